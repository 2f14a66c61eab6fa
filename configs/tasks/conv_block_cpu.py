"""Convolution, ReLU and max pooling, sized for two CPU cores (a sibling of conv_block).

Shapes: our own: 8 RGB images of 96 x 96, 32 filters of 11 x 11, stride 4, padding 2, pooling 3/2.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, in_channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, filters, kernel_size=11, stride=4, padding=2)
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2)

    def forward(self, x):
        return self.pool(torch.relu(self.conv(x)))


BATCH, CHANNELS, SIDE, FILTERS = 8, 3, 96, 32


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
