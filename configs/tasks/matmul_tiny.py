"""Matrix product in float32, small enough for tests (a sibling of matmul_fp32).

Shapes: our own, 48 x 40 times 40 x 56.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


M, K, N = 48, 40, 56


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
