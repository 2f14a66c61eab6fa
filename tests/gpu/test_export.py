"""An exported CUDA kernel in a fresh process: stream, workspace, capture, fallbacks."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_sandbox.signature import Role, Signature, TensorSpec
from evo.export.bundle import Bundle
from evo.individual import Birth
from evo.report.view import RunView
from fitness.description import TaskDescription
from tests.evo.synthetic_run import individual, info, verdict

HERE = Path(__file__).parent
TASK = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))

    def forward(self, x):
        return x * self.weight + x.sum(1, keepdim=True)


def get_inputs():
    return [torch.randn(64, 512)]


def get_init_inputs():
    return [512]
"""
KERNEL = r"""
__global__ void row_sums(const float* x, float* sums) {
  float sum = 0;
  for (int i = threadIdx.x; i < X_D1; i += 32) sum += x[blockIdx.x * X_D1 + i];
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void scale(const float* x, const float* weight, const float* sums, float* out) {
  for (int i = threadIdx.x; i < X_D1; i += blockDim.x)
    out[blockIdx.x * X_D1 + i] = x[blockIdx.x * X_D1 + i] * weight[i] + sums[blockIdx.x];
}

extern "C" size_t workspace_bytes(void) { return X_D0 * sizeof(float); }

extern "C" int launch(const float* x, const float* weight, float* out, void* workspace,
                      cudaStream_t stream) {
  CUtensorMap map;  // only to see that the folder brings the helper along
  uint64_t dims[] = {X_D1, X_D0}, strides[] = {X_D1 * sizeof(float)};
  uint32_t box[] = {32, 8}, steps[] = {1, 1};
  int code = kernelevo_tensor_map_tiled(
      &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(x), dims, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (code) return code;
  float* sums = static_cast<float*>(workspace);
  row_sums<<<X_D0, 32, 0, stream>>>(x, sums);
  scale<<<X_D0, 128, 0, stream>>>(x, weight, sums, out);
  return cudaGetLastError();
}
"""


def write(folder: Path) -> None:
    """The package ``scaled`` under ``folder``."""
    tensors = (
        TensorSpec("x", "float32", (64, 512), Role.INPUT),
        TensorSpec("weight", "float32", (512,), Role.PARAMETER),
    )
    out = TensorSpec("out", "float32", (64, 512), Role.OUTPUT)
    signature = Signature("scaled", tensors, (out,))
    task = TaskDescription("scaled", TASK, signature, ())
    birth = Birth(0, 0, "port", "catalogue", (), None)
    one = individual("0-0-0", birth, KERNEL, verdict(2.0), "cuda")
    about = replace(info(), task=task, header=signature.header("cuda"))
    Bundle(RunView(about, (one,)), one).write(folder / "scaled")


@pytest.mark.gpu
def test_an_exported_kernel_serves_in_a_fresh_process(tmp_path: Path) -> None:
    write(tmp_path)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    for arguments in ([str(HERE / "export_check.py"), str(tmp_path)], ["-m", "scaled"]):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**clean, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
