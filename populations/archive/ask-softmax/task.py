"""Softmax over the rows of a matrix, float32.

Shapes: 4096 rows of 65,536 columns (1 GiB), as in the published work on AI-written kernels
(Stanford CRFM, May 2025).
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


ROWS, COLUMNS = 4096, 65536


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
