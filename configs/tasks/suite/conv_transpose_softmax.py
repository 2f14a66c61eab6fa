"""A transposed convolution, softmax over its channels and a sigmoid of the biased result.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 4, stride=2, padding=1)
        self.bias = nn.Parameter(torch.randn(filters, 1, 1))

    def forward(self, x):
        return torch.sigmoid((torch.softmax(self.conv(x), dim=1) + self.bias) * 2)


BATCH, CHANNELS, FILTERS, SIDE = 2, 8, 6, 10


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
