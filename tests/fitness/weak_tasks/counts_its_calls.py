"""The output depends on how often forward was called."""

import torch
from torch import nn

calls = []


class Model(nn.Module):
    def forward(self, x):
        calls.append(1)
        return x * len(calls)


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
