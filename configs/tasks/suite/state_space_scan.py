"""A linear recurrence with decay that depends on the input, as in state space models.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.decay = nn.Linear(width, width)
        self.drive = nn.Linear(width, width)

    def forward(self, x):
        decay, drive = torch.sigmoid(self.decay(x)), self.drive(x)
        state = torch.zeros_like(x[:, 0])
        states = []
        for step in range(x.shape[1]):
            state = decay[:, step] * state + drive[:, step]
            states.append(state)
        return torch.stack(states, dim=1)


BATCH, STEPS, WIDTH = 4, 12, 24


def get_inputs():
    return [torch.randn(BATCH, STEPS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
