"""A copy: there is no work to do."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.clone()


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
