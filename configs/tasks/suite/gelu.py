"""Gaussian error linear unit by the tanh formula.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, x):
        return functional.gelu(x, approximate="tanh")


BATCH, WIDTH = 16, 1024


def get_inputs():
    return [torch.randn(BATCH, WIDTH)]


def get_init_inputs():
    return []
