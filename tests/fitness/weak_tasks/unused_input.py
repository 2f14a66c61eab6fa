"""Two inputs, of which one is never looked at."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, weight):
        return torch.tanh(x)


def get_inputs():
    return [torch.randn(16, 64), torch.randn(64, 64)]


def get_init_inputs():
    return []
