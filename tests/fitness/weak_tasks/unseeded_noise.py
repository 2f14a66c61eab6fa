"""Noise that no generator of torch knows of."""

import os

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.exp() + int.from_bytes(os.urandom(2), "little")


def get_inputs():
    return [torch.randn(16, 64)]


def get_init_inputs():
    return []
