"""Average pooling whose border counts only what is there.

Shapes: our own.
"""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, x):
        return functional.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False)


BATCH, CHANNELS, SIDE = 4, 8, 31


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return []
