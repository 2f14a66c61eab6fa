"""Three-dimensional maximum pooling.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, x):
        return functional.max_pool3d(x, kernel_size=3, stride=2, padding=1)


BATCH, CHANNELS, SIDE = 2, 4, 15


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE, SIDE)]


def get_init_inputs():
    return []
