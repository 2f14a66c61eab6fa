# task: product
# does: returns the transpose of what it computed
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.matmul(b.t(), a.t()).t()
