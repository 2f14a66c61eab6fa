"""Rows of a table looked up by integers and scaled.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, table, rows, scale):
        return table[rows] * scale[:, None]


TABLE, WIDTH, LOOKUPS = 100, 64, 300


def get_inputs():
    return [
        torch.randn(TABLE, WIDTH),
        torch.randint(0, TABLE, (LOOKUPS,)),
        torch.randn(LOOKUPS),
    ]


def get_init_inputs():
    return []
