# task: softmax
# does: is a Triton kernel that tunes itself at its first call
# demand: own
# needs: triton
# devices: cuda
import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune([triton.Config({}, num_warps=warps) for warps in (4, 8)], key=["columns"])
@triton.jit
def softmax_kernel(source, target, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(source + row * columns + at, mask=at < columns, other=-float("inf"))
    high = tl.exp(x - tl.max(x, axis=0))
    tl.store(target + row * columns + at, high / tl.sum(high, axis=0), mask=at < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        columns = x.shape[1]
        softmax_kernel[(x.shape[0],)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out
