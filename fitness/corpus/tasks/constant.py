"""A task whose output never depends on its input: the largest of one number, less itself."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top = torch.max(x, dim=1, keepdim=True).values
        return torch.nn.functional.gelu(top - top.mean(dim=1, keepdim=True))


def get_inputs():
    return [torch.randn(64, 512)]


def get_init_inputs():
    return []
