"""Scaled dot-product attention in float16.

Shapes: batch 16, 16 heads, 2048 tokens, head size 64. The published work on AI-written kernels
(Stanford CRFM, May 2025) gives no shape for its FP16 attention; this one is ours, typical of
language models.
"""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


BATCH, HEADS, TOKENS, HEAD_SIZE = 16, 16, 2048, 64


def get_inputs():
    shape = (BATCH, HEADS, TOKENS, HEAD_SIZE)
    return [torch.randn(shape, dtype=torch.float16) for _ in range(3)]


def get_init_inputs():
    return []
