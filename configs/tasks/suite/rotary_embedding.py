"""Rotary position embedding: pairs of features turned by angles that grow along the sequence.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        rates = 1e4 ** (-torch.arange(0, width, 2) / width)
        angles = torch.outer(torch.arange(tokens).float(), rates)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())

    def forward(self, x):
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = (even * self.cosine - odd * self.sine, even * self.sine + odd * self.cosine)
        return torch.stack(turned, dim=-1).flatten(-2)


BATCH, HEADS, TOKENS, WIDTH = 2, 4, 32, 16


def get_inputs():
    return [torch.randn(BATCH, HEADS, TOKENS, WIDTH)]


def get_init_inputs():
    return [TOKENS, WIDTH]
