"""A single 2-D convolution with bias, sized for two CPU cores (a sibling of conv2d).

Shapes: our own: 8 RGB images of 96 x 96, 32 filters of 11 x 11, stride 4, padding 2.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, in_channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, filters, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        return self.conv(x)


BATCH, CHANNELS, SIDE, FILTERS = 8, 3, 96, 32


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
