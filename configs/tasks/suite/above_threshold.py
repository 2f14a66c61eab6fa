"""Which elements lie above the mean of their row (a bool for each).

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x > x.mean(dim=1, keepdim=True)


ROWS, COLUMNS = 32, 256


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
