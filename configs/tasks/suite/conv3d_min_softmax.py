"""A three-dimensional convolution, its minimum over depth, softmax over channels.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv3d(channels, filters, 3)

    def forward(self, x):
        return torch.softmax(torch.amin(self.conv(x), dim=2), dim=1)


BATCH, CHANNELS, FILTERS, SIDE = 2, 3, 6, 10


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
