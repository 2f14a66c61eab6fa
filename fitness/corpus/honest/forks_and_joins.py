# task: softmax
# does: works on a second stream that forks from the caller's and joins it again
# devices: cuda
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, x):
        here = torch.cuda.current_stream()
        half = x.shape[0] // 2
        self.side.wait_stream(here)
        with torch.cuda.stream(self.side):
            lower = torch.softmax(x[half:], 1)
        upper = torch.softmax(x[:half], 1)
        here.wait_stream(self.side)
        return torch.cat((upper, lower))
