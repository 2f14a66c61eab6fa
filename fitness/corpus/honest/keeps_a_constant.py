# task: softmax
# does: keeps a constant that it made in its constructor
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("one", torch.ones(()))

    def forward(self, x):
        high = torch.exp(x - x.amax(dim=1, keepdim=True))
        return high * (self.one / high.sum(dim=1, keepdim=True))
