"""One-dimensional convolution with stride and dilation.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv1d(channels, filters, kernel_size=5, stride=2, dilation=3)

    def forward(self, x):
        return self.conv(x)


BATCH, CHANNELS, FILTERS, LENGTH = 4, 8, 16, 128


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
