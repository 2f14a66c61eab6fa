"""Layers that each see all features before them.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, growth, layers):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv2d(channels + growth * i, growth, 3, padding=1) for i in range(layers)
        )

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(torch.relu(layer(torch.cat(features, dim=1))))
        return torch.cat(features, dim=1)


BATCH, CHANNELS, GROWTH, LAYERS, SIDE = 2, 6, 4, 3, 12


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, GROWTH, LAYERS]
