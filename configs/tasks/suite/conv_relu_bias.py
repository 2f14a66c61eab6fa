"""A convolution, a rectifier and a bias of its own for each channel.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x):
        return torch.relu(self.conv(x)) + self.bias


BATCH, CHANNELS, FILTERS, SIDE = 4, 3, 12, 20


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
