"""Rectified linear unit.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


BATCH, WIDTH = 16, 1024


def get_inputs():
    return [torch.randn(BATCH, WIDTH)]


def get_init_inputs():
    return []
