"""Scaled dot-product attention in which a token sees only those before it.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, query, key, value):
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


BATCH, HEADS, TOKENS, WIDTH = 2, 4, 32, 16


def get_inputs():
    return [torch.randn(BATCH, HEADS, TOKENS, WIDTH) for _ in range(3)]


def get_init_inputs():
    return []
