"""The mean of what was made to have a mean of zero, with no weights that could tell."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, x):
        return functional.layer_norm(x, (256,)).mean(dim=1)


def get_inputs():
    return [torch.randn(8, 256)]


def get_init_inputs():
    return []
