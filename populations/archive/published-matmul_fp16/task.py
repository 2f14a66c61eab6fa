"""Square matrix product in float16: C = A B.

Shapes: 4096 x 4096 times 4096 x 4096, half precision in and out, as in the published work on
AI-written kernels (Stanford CRFM, May 2025).
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


N = 4096


def get_inputs():
    return [torch.randn(N, N, dtype=torch.float16), torch.randn(N, N, dtype=torch.float16)]


def get_init_inputs():
    return []
