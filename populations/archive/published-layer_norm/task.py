"""Layer normalisation over the last three dimensions, with weight and bias, float32.

Shapes: 16 samples of 64 x 256 x 256 (256 MiB), as in the published work on AI-written kernels
(Stanford CRFM, May 2025).
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, normalized_shape):
        super().__init__()
        self.ln = nn.LayerNorm(normalized_shape)

    def forward(self, x):
        return self.ln(x)


BATCH, FEATURES, SIDE = 16, 64, 256


def get_inputs():
    return [torch.randn(BATCH, FEATURES, SIDE, SIDE)]


def get_init_inputs():
    return [(FEATURES, SIDE, SIDE)]
