"""Rounding to eight bits with a scale for each row, as for weights of a network.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(dim=1, keepdim=True).clamp(min=1e-8) / 127
        return torch.clamp(torch.round(x / scale), -127, 127).to(torch.int32), scale


ROWS, COLUMNS = 32, 256


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
