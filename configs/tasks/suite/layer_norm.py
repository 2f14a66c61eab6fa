"""Layer normalisation over the last dimension of a batch of sequences.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x)


BATCH, TOKENS, WIDTH = 4, 16, 256


def get_inputs():
    return [torch.randn(BATCH, TOKENS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
