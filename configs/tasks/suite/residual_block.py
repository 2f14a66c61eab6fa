"""A residual block with batch normalisation and a projected shortcut.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.first = nn.Conv2d(channels, filters, 3, stride=2, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(filters)
        self.second = nn.Conv2d(filters, filters, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(filters)
        self.shortcut = nn.Conv2d(channels, filters, 1, stride=2, bias=False)

    def forward(self, x):
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inner)) + self.shortcut(x))


BATCH, CHANNELS, FILTERS, SIDE = 4, 8, 12, 16


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
