"""Products of a batch of matrices with the second ones transposed.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b.transpose(1, 2))


BATCH, M, K, N = 6, 32, 48, 40


def get_inputs():
    return [torch.randn(BATCH, M, K), torch.randn(BATCH, N, K)]


def get_init_inputs():
    return []
