"""Three-dimensional convolution of a short film.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv3d(channels, filters, kernel_size=(2, 3, 3), stride=(1, 2, 2))

    def forward(self, x):
        return self.conv(x)


BATCH, CHANNELS, FILTERS, FRAMES, SIDE = 2, 3, 8, 6, 16


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, FRAMES, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
