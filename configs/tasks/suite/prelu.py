"""Rectifier with a learned slope for each channel.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.slope = nn.PReLU(channels)

    def forward(self, x):
        return self.slope(x)


BATCH, CHANNELS, SIDE = 4, 16, 20


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS]
