"""Two-dimensional maximum pooling that also tells where each maximum was.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, x):
        return functional.max_pool2d(x, kernel_size=3, stride=2, padding=1, return_indices=True)


BATCH, CHANNELS, SIDE = 4, 8, 30


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return []
