"""A linear layer, group normalisation of its features and a clamp.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def __init__(self, features, outputs, groups):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.norm = nn.GroupNorm(groups, outputs)

    def forward(self, x):
        return functional.hardtanh(self.norm(self.linear(x)), -2.0, 2.0)


BATCH, FEATURES, OUTPUTS, GROUPS = 32, 48, 64, 8


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES, OUTPUTS, GROUPS]
