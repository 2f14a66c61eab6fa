"""A convolutional network for small images: two convolutions and three linear layers.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.first = nn.Conv2d(1, 6, 5)
        self.second = nn.Conv2d(6, 12, 3)
        self.hidden = nn.Linear(12 * 4 * 4, 48)
        self.last = nn.Linear(48, classes)

    def forward(self, x):
        x = functional.max_pool2d(torch.relu(self.first(x)), 2)
        x = functional.max_pool2d(torch.relu(self.second(x)), 2)
        return self.last(torch.relu(self.hidden(torch.flatten(x, 1))))


BATCH, SIDE, CLASSES = 8, 24, 10


def get_inputs():
    return [torch.randn(BATCH, 1, SIDE, SIDE)]


def get_init_inputs():
    return [CLASSES]
