"""A convolution, batch normalisation, a rectifier and maximum pooling.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x):
        return functional.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)


BATCH, CHANNELS, FILTERS, SIDE = 4, 3, 8, 16


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
