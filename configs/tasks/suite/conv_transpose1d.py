"""One-dimensional transposed convolution with dilation.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.ConvTranspose1d(channels, filters, 4, stride=3, padding=1, dilation=2)

    def forward(self, x):
        return self.conv(x)


BATCH, CHANNELS, FILTERS, LENGTH = 4, 12, 6, 40


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
