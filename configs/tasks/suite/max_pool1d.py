"""One-dimensional maximum pooling with dilation.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, x):
        return functional.max_pool1d(x, kernel_size=4, stride=2, padding=1, dilation=2)


BATCH, CHANNELS, LENGTH = 4, 16, 200


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs():
    return []
