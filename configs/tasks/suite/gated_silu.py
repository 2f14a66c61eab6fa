"""Gated linear unit: one half passes through SiLU and scales the other.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, x):
        gate, value = x.chunk(2, dim=-1)
        return functional.silu(gate) * value


ROWS, WIDTH = 32, 512


def get_inputs():
    return [torch.randn(ROWS, 2 * WIDTH)]


def get_init_inputs():
    return []
