"""Attention by hand, with fewer heads of keys and values than of queries.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, repeats):
        super().__init__()
        self.repeats = repeats

    def forward(self, query, key, value):
        key = key.repeat_interleave(self.repeats, dim=1)
        value = value.repeat_interleave(self.repeats, dim=1)
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1) @ value


BATCH, HEADS, REPEATS, TOKENS, SEEN, WIDTH = 2, 6, 3, 20, 28, 16


def get_inputs():
    return [
        torch.randn(BATCH, HEADS, TOKENS, WIDTH),
        torch.randn(BATCH, HEADS // REPEATS, SEEN, WIDTH),
        torch.randn(BATCH, HEADS // REPEATS, SEEN, WIDTH),
    ]


def get_init_inputs():
    return [REPEATS]
