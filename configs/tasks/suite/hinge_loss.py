"""Hinge loss of scores with labels of -1 and 1.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, scores, labels):
        return torch.mean(torch.clamp(1 - scores * labels, min=0))


ROWS = 4096


def get_inputs():
    return [torch.randn(ROWS), torch.randint(0, 2, (ROWS,)).float() * 2 - 1]


def get_init_inputs():
    return []
