"""Two indices of a four-dimensional tensor contracted with a matrix.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, weight):
        return torch.einsum("bijl,lk->bijk", x, weight)


BATCH, HEIGHT, WIDTH, INNER, OUTER = 2, 12, 14, 32, 24


def get_inputs():
    return [torch.randn(BATCH, HEIGHT, WIDTH, INNER), torch.randn(INNER, OUTER)]


def get_init_inputs():
    return []
