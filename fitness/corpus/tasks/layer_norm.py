"""Layer norm whose initial weight and bias do nothing, on inputs that are normalised already."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(32, 1024)]


def get_init_inputs():
    return [1024]
