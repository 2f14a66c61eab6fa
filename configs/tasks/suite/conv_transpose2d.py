"""Two-dimensional transposed convolution with output padding.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=2, padding=1, output_padding=1)

    def forward(self, x):
        return self.conv(x)


BATCH, CHANNELS, FILTERS, SIDE = 2, 8, 6, 14


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
