"""The largest of one number less its mean: zero, whatever the inputs are."""

import torch
from torch import nn
from torch.nn import functional


class Model(nn.Module):
    def forward(self, x):
        top = torch.amax(x, dim=1, keepdim=True)
        return functional.gelu(top - top.mean(dim=1, keepdim=True))


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return []
