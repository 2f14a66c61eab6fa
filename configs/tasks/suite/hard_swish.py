"""Hard swish, a piecewise polynomial.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * torch.clamp(x + 3, 0, 6) / 6


BATCH, WIDTH = 16, 1024


def get_inputs():
    return [torch.randn(BATCH, WIDTH) * 4]


def get_init_inputs():
    return []
