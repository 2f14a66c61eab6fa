"""Three-dimensional transposed convolution in groups.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters, groups):
        super().__init__()
        self.conv = nn.ConvTranspose3d(
            channels, filters, (3, 5, 3), stride=2, padding=1, groups=groups
        )

    def forward(self, x):
        return self.conv(x)


BATCH, CHANNELS, FILTERS, GROUPS, SIDE = 2, 8, 4, 2, 6


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS, GROUPS]
