"""Outputs so small that zeros are within 1e-2 of them."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(2, 65536)]


def get_init_inputs():
    return []
