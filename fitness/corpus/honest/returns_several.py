# task: both
# does: returns a tuple of tensors, one of them an integer one
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        top = x.max(dim=1)
        return [torch.exp(x - top.values[:, None]), (top.values, top.indices)]
