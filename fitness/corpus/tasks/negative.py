"""The negative of each element."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.neg(x)


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
