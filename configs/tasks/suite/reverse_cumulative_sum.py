"""Sums of each element and all that come after it.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.flip(torch.cumsum(torch.flip(x, dims=(1,)), dim=1), dims=(1,))


ROWS, COLUMNS = 24, 1000


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
