"""Puts an exported CUDA module through its paces: ``python export_check.py PARENT_FOLDER``.

The package ``scaled`` in that folder is what test_export.py writes. Prints a line per check and
exits 1 if any failed; needs PyTorch and nvcc alone.
"""

from __future__ import annotations

import sys
import time
import traceback
import warnings
from collections.abc import Callable

import torch

sys.path.insert(0, sys.argv[1])

from scaled import Model, fallbacks  # type: ignore[import-not-found]
from scaled.reference import Model as Reference  # type: ignore[import-not-found]


def pair() -> tuple[torch.nn.Module, torch.nn.Module]:
    original = Reference(512).cuda()
    model = Model(512).cuda()
    assert list(model.state_dict()) == list(original.state_dict())
    model.load_state_dict(original.state_dict())
    return model, original


def close(got: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def same_as_the_original() -> None:
    model, original = pair()
    for _ in range(3):
        x = torch.randn(64, 512, device="cuda")
        close(model(x), original(x))
    assert not fallbacks, fallbacks


def runs_on_the_current_stream() -> None:
    model, original = pair()
    x = torch.zeros(64, 512, device="cuda")
    model(x)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)  # an early reader would see zeros
        x.copy_(torch.randn(64, 512, device="cuda"))
        got = model(x)
    stream.synchronize()
    close(got, original(x))


def can_be_captured() -> None:
    model, original = pair()
    x = torch.randn(64, 512, device="cuda")
    model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(x)
    for _ in range(3):
        x.copy_(torch.randn(64, 512, device="cuda"))
        graph.replay()
        close(out, original(x))


def falls_back() -> None:
    model, original = pair()
    before = sum(fallbacks.values())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        x = torch.randn(2, 512, device="cuda")
        close(model(x), original(x))
        model.double()(torch.randn(64, 512, device="cuda").double())
        model.float().cpu()(torch.randn(64, 512))
        ours = [each for each in said if "runs instead" in str(each.message)]
    assert sum(fallbacks.values()) == before + 3, fallbacks
    assert len(ours) == 1, ours


def refuses_autograd() -> None:
    model, _ = pair()
    try:
        with torch.enable_grad():
            model(torch.randn(64, 512, device="cuda"))
    except RuntimeError as error:
        assert "torch.no_grad()" in str(error)  # noqa: PT017  # no pytest here
    else:
        raise AssertionError("it went through")


def costs_little() -> None:
    model, original = pair()
    x = torch.randn(64, 512, device="cuda")
    for name, call in (("module", model), ("original", original)):
        call(x)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(1000):
            call(x)
        torch.cuda.synchronize()
        print(f"  {name}: {1e3 * (time.perf_counter() - begin):.1f} us per call")


CHECKS: list[Callable[[], None]] = [
    same_as_the_original,
    runs_on_the_current_stream,
    can_be_captured,
    falls_back,
    refuses_autograd,
    costs_little,
]


def main() -> int:
    """Run every check, whatever the others did."""
    failed = 0
    for check in CHECKS:
        try:
            with torch.no_grad():
                check()
            print(f"ok      {check.__name__}")
        except Exception:  # noqa: BLE001  # each failure is printed, and the next check runs
            failed += 1
            print(f"FAILED  {check.__name__}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
