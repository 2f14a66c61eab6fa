"""A gated recurrent unit run over a sequence in both directions.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.gru = nn.GRU(features, hidden, bidirectional=True)

    def forward(self, x, state):
        return self.gru(x, state)


STEPS, BATCH, FEATURES, HIDDEN = 8, 4, 12, 10


def get_inputs():
    return [torch.randn(STEPS, BATCH, FEATURES), torch.randn(2, BATCH, HIDDEN)]


def get_init_inputs():
    return [FEATURES, HIDDEN]
