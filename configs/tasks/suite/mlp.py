"""A perceptron with two hidden layers.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, widths):
        super().__init__()
        first, second, third, last = widths
        self.layers = nn.Sequential(
            nn.Linear(first, second),
            nn.ReLU(),
            nn.Linear(second, third),
            nn.ReLU(),
            nn.Linear(third, last),
        )

    def forward(self, x):
        return self.layers(x)


BATCH, WIDTHS = 16, [40, 64, 64, 10]


def get_inputs():
    return [torch.randn(BATCH, WIDTHS[0])]


def get_init_inputs():
    return [WIDTHS]
