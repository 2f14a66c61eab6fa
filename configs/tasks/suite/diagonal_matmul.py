"""A diagonal matrix, given as a vector, times a full one.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, diagonal, b):
        return torch.diag(diagonal) @ b


N, M = 80, 112


def get_inputs():
    return [torch.randn(N), torch.randn(N, M)]


def get_init_inputs():
    return []
