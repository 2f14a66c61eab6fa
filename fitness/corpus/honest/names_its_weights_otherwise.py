# task: layer_norm
# does: keeps weight and bias under other names, in the same order
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.empty(width))
        self.shift = nn.Parameter(torch.empty(width))

    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[1:], self.scale, self.shift)
