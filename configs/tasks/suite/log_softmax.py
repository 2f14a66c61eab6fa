"""Logarithm of the softmax over the channels of an image.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, dim=1)


BATCH, CHANNELS, SIDE = 4, 21, 16


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return []
