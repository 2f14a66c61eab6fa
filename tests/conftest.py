"""What all tests share: a cache folder of their own, and a word where a device or package lacks."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuda_sandbox import driver

HERE = Path(__file__).parent
AS_IS = "KERNELEVO_TEST_AS_IS"  # set by `make test-gpu`: packages may be missing there
OWN_CACHE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep the tests out of the user's cache; parallel workers share one folder."""
    if "KERNELEVO_CACHE" not in os.environ:
        config.stash[OWN_CACHE] = tempfile.mkdtemp(prefix="kernelevo-tests-")
        os.environ["KERNELEVO_CACHE"] = config.stash[OWN_CACHE]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the cache folder that this process made."""
    if folder := config.stash.get(OWN_CACHE, None):
        shutil.rmtree(folder, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in tests/gpu, and skip what needs a device where there is none."""
    for item in items:
        if HERE / "gpu" in item.path.parents:
            item.add_marker(pytest.mark.gpu)
    needing = [item for item in items if item.get_closest_marker("gpu")]
    if needing and not driver.count():
        for item in needing:
            item.add_marker(
                pytest.mark.skip(reason="no CUDA device: make test-gpu on a GPU machine")
            )


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Iterator[None]:
    """Under `make test-gpu`, a test file whose packages are missing is skipped, not an error."""
    report = yield
    if report.failed and os.environ.get(AS_IS) and isinstance(collector, pytest.File):
        missing = _missing_package(str(report.longrepr))
        if missing:
            report.outcome = "skipped"
            report.longrepr = (str(collector.path), 0, f"Skipped: needs the package {missing}")
    return report


def _missing_package(error: str) -> str | None:
    """The package that an import error names, unless it is one of ours."""
    _, found, rest = error.rpartition("ModuleNotFoundError: No module named '")
    name = rest.partition("'")[0].partition(".")[0]
    ours = {path.name for path in HERE.parent.iterdir()}
    return name if found and name not in ours else None
