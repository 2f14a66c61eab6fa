"""A linear layer whose output is scaled and added to itself, then clamped and reduced.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, outputs, scale):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.scale = scale

    def forward(self, x):
        x = self.linear(x) * self.scale
        x = torch.clamp(x + x, -4.0, 4.0)
        return torch.logsumexp(x, dim=1, keepdim=True)


BATCH, FEATURES, OUTPUTS = 32, 64, 96


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES, OUTPUTS, 2.0]
