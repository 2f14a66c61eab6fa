"""Dropout as in training."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, x):
        return functional.dropout(x, 0.5)


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
