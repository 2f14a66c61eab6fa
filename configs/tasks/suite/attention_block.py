"""Self-attention with its projections, several heads and a causal mask kept as a buffer.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, heads, tokens):
        super().__init__()
        self.heads = heads
        self.split = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(tokens, tokens, dtype=torch.bool).tril())

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.split(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.mT * (width // self.heads) ** -0.5
        scores = scores.masked_fill(~self.mask, float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.join(mixed.transpose(1, 2).reshape(batch, tokens, width))


BATCH, TOKENS, WIDTH, HEADS = 2, 24, 48, 4


def get_inputs():
    return [torch.randn(BATCH, TOKENS, WIDTH)]


def get_init_inputs():
    return [WIDTH, HEADS, TOKENS]
