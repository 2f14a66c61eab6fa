"""One step of a plain recurrent network: new hidden state and output.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden, outputs):
        super().__init__()
        self.step = nn.Linear(features + hidden, hidden)
        self.read = nn.Linear(hidden, outputs)

    def forward(self, x, state):
        state = torch.tanh(self.step(torch.cat((x, state), dim=1)))
        return self.read(state), state


BATCH, FEATURES, HIDDEN, OUTPUTS = 16, 32, 48, 20


def get_inputs():
    return [torch.randn(BATCH, FEATURES), torch.randn(BATCH, HIDDEN)]


def get_init_inputs():
    return [FEATURES, HIDDEN, OUTPUTS]
