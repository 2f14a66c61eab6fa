# task: relu
# does: writes its output into rows that are longer than it needs
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        wide = x.new_empty(*x.shape[:-1], x.shape[-1] + 16)
        out = wide[..., : x.shape[-1]]
        return torch.clamp(x, min=0, out=out)
