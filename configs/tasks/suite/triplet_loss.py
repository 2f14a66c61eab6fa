"""Triplet margin loss: an anchor, something alike and something different.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.loss = nn.TripletMarginLoss(margin=margin)

    def forward(self, anchor, alike, different):
        return self.loss(anchor, alike, different)


ROWS, WIDTH = 64, 128


def get_inputs():
    return [torch.randn(ROWS, WIDTH) for _ in range(3)]


def get_init_inputs():
    return [1.0]
