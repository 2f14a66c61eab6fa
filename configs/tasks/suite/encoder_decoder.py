"""A small network that goes down one scale and up again, with a connection across.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, width, classes):
        super().__init__()
        self.enter = nn.Conv2d(channels, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.leave = nn.Conv2d(2 * width, classes, 1)

    def forward(self, x):
        across = torch.relu(self.enter(x))
        inner = torch.relu(self.up(torch.relu(self.down(across))))
        return self.leave(torch.cat((across, inner), dim=1))


BATCH, CHANNELS, WIDTH, CLASSES, SIDE = 2, 3, 8, 4, 16


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, WIDTH, CLASSES]
