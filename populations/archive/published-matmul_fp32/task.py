"""Square matrix product in float32: C = A B.

Shapes: 4096 x 4096 times 4096 x 4096, as in the published work on AI-written kernels (Stanford
CRFM, May 2025), which raised KernelBench's sizes until launch overhead no longer counts.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


N = 4096


def get_inputs():
    return [torch.randn(N, N), torch.randn(N, N)]


def get_init_inputs():
    return []
