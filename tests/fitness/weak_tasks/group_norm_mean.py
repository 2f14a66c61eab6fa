"""The mean of what was made to have a mean of zero; only drawn weights tell."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(2, 8)

    def forward(self, x):
        return self.norm(x).mean(dim=(1, 2))


def get_inputs():
    return [torch.randn(8, 8, 64)]


def get_init_inputs():
    return []
