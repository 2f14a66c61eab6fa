"""Product of two lower triangular matrices, which is lower triangular again.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.tril(torch.matmul(a, b))


N = 96


def get_inputs():
    return [torch.tril(torch.randn(N, N)), torch.tril(torch.randn(N, N))]


def get_init_inputs():
    return []
