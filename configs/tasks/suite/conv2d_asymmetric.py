"""Two-dimensional convolution with an oblong kernel and no bias.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, (3, 7), padding=(1, 3), bias=False)

    def forward(self, x):
        return self.conv(x)


BATCH, CHANNELS, FILTERS, HEIGHT, WIDTH = 2, 4, 8, 18, 30


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
