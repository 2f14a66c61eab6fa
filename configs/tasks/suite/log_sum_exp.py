"""Logarithm of the sum of exponentials over two dimensions.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, dim=(1, 2))


BATCH, ROWS, COLUMNS = 16, 32, 48


def get_inputs():
    return [torch.randn(BATCH, ROWS, COLUMNS)]


def get_init_inputs():
    return []
