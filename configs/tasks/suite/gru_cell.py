"""One step of a gated recurrent unit.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.cell = nn.GRUCell(features, hidden)

    def forward(self, x, state):
        return self.cell(x, state)


BATCH, FEATURES, HIDDEN = 16, 24, 32


def get_inputs():
    return [torch.randn(BATCH, FEATURES), torch.randn(BATCH, HIDDEN)]


def get_init_inputs():
    return [FEATURES, HIDDEN]
