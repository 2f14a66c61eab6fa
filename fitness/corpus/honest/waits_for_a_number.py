# task: softmax
# does: fetches a number from the device, which cannot be captured
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        top = x.max().item()
        high = torch.exp((x - top).double())
        return (high / high.sum(dim=1, keepdim=True)).float() if top < 80 else torch.softmax(x, 1)
