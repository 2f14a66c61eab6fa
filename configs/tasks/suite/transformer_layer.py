"""One layer of a transformer encoder, normalised beforehand.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.inner_norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, inner)
        self.outer = nn.Linear(inner, width)

    def forward(self, x):
        seen = self.attention_norm(x)
        x = x + self.attention(seen, seen, seen, need_weights=False)[0]
        return x + self.outer(functional.gelu(self.inner(self.inner_norm(x))))


BATCH, TOKENS, WIDTH, HEADS, INNER = 2, 16, 32, 4, 64


def get_inputs():
    return [torch.randn(BATCH, TOKENS, WIDTH)]


def get_init_inputs():
    return [WIDTH, HEADS, INNER]
