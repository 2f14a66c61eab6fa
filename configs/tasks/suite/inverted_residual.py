"""A block of a mobile network: wide inside, depthwise in the middle, narrow outside.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, channels, factor):
        super().__init__()
        wide = channels * factor
        self.expand = nn.Conv2d(channels, wide, 1, bias=False)
        self.depthwise = nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False)
        self.project = nn.Conv2d(wide, channels, 1, bias=False)

    def forward(self, x):
        inner = functional.relu6(self.expand(x))
        inner = functional.relu6(self.depthwise(inner))
        return x + self.project(inner)


BATCH, CHANNELS, FACTOR, SIDE = 2, 8, 4, 14


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FACTOR]
