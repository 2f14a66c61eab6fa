"""Grouped convolution with reflected borders.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters, groups):
        super().__init__()
        self.conv = nn.Conv2d(
            channels, filters, 3, padding=1, groups=groups, padding_mode="reflect"
        )

    def forward(self, x):
        return self.conv(x)


BATCH, CHANNELS, FILTERS, GROUPS, SIDE = 2, 12, 24, 3, 18


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS, GROUPS]
