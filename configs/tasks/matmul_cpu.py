"""Matrix product in float32, sized for two CPU cores (a sibling of matmul_fp32).

Shapes: our own, 512 x 384 times 384 x 640: no two dimensions alike, so that a kernel that mixes
them up is found out.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


M, K, N = 512, 384, 640


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
