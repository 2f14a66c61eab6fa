"""Two layers of long short-term memory over a short sequence; the last step is read.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden, outputs):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True)
        self.read = nn.Linear(hidden, outputs)

    def forward(self, x):
        steps, _ = self.lstm(x)
        return self.read(steps[:, -1])


BATCH, STEPS, FEATURES, HIDDEN, OUTPUTS = 4, 8, 12, 16, 6


def get_inputs():
    return [torch.randn(BATCH, STEPS, FEATURES)]


def get_init_inputs():
    return [FEATURES, HIDDEN, OUTPUTS]
