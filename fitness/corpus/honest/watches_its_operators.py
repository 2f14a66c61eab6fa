# task: softmax
# does: counts its own operators in a mode that it closes again
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode


class Count(TorchDispatchMode):
    seen = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen += 1
        return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        with Count():  # the first use of a mode imports torch's compiler
            torch.zeros(1) + 1

    def forward(self, x):
        with Count():
            return torch.softmax(x, 1)
