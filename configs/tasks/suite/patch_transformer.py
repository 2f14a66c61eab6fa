"""A transformer over the patches of an image, read at its class token.

Shapes: our own.
"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, side, patch, width, heads, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.first = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width))
        self.layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, batch_first=True
        )
        self.read = nn.Linear(width, classes)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat((self.first.expand(x.shape[0], -1, -1), tokens), dim=1)
        return self.read(self.layer(tokens + self.places)[:, 0])


BATCH, SIDE, PATCH, WIDTH, HEADS, CLASSES = 2, 16, 4, 24, 4, 10


def get_inputs():
    return [torch.randn(BATCH, 3, SIDE, SIDE)]


def get_init_inputs():
    return [SIDE, PATCH, WIDTH, HEADS, CLASSES]
