"""Product of a wide matrix with a vector.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, matrix, vector):
        return torch.mv(matrix, vector)


ROWS, COLUMNS = 64, 4096


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS)]


def get_init_inputs():
    return []
