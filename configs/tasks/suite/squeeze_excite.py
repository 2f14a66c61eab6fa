"""Channels scaled by what a small network makes of their means.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, inner):
        super().__init__()
        self.squeeze = nn.Linear(channels, inner)
        self.excite = nn.Linear(inner, channels)

    def forward(self, x):
        scale = self.excite(torch.relu(self.squeeze(x.mean(dim=(2, 3)))))
        return x * torch.sigmoid(scale)[:, :, None, None]


BATCH, CHANNELS, INNER, SIDE = 4, 16, 6, 12


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, INNER]
