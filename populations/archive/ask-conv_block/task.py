"""Convolution, ReLU and max pooling, float32.

Shapes: 100 RGB images of 224 x 224, 96 filters of 11 x 11, stride 4, padding 2, then pooling over
3 x 3 windows with stride 2: the first block of AlexNet, with the batch of the published work on
AI-written kernels (Stanford CRFM, May 2025).
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, in_channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, filters, kernel_size=11, stride=4, padding=2)
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2)

    def forward(self, x):
        return self.pool(torch.relu(self.conv(x)))


BATCH, CHANNELS, SIDE, FILTERS = 100, 3, 224, 96


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS]
