"""The sum of each row of a matrix, sized for two CPU cores.

Shapes: our own, 4096 rows of 4,096 columns (64 MiB).
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1)


ROWS, COLUMNS = 4096, 4096


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
