"""Two certificates beside each other, and finding one in a file."""

from __future__ import annotations

import copy
import json

import pytest

from fitness.certificate import NoCertificate, compare, read

BASE = {
    "made": "2026-11-30T12:00:00+00:00",
    "source_digest": "aa",
    "task": {"name": "norm", "digest": "sha256:11"},
    "checks": {"hidden inputs": "passed on 7 distributions", "racecheck": "not run: no end"},
    "figures": {
        "time_ms": {"kernel": {"median": 1.0, "low": 0.99, "high": 1.01}},
        "speedup": {"eager": {"median": 2.0, "low": 1.98, "high": 2.02}},
    },
    "environment": {"device": "NVIDIA H200"},
}


def changed(**parts):
    found = copy.deepcopy(BASE)
    for path, value in parts.items():
        *path, last = path.split("__")
        place = found
        for key in path:
            place = place[key]
        place[last] = value
    return found


def test_the_same_figures_agree():
    told = compare(BASE, changed(figures__time_ms__kernel__median=1.005))

    assert told["summary"].startswith("agrees with the certificate of 2026-11-30")
    assert told["lines"] == []


def test_a_figure_beyond_its_interval_is_named_with_both_values():
    slower = {"median": 1.1, "low": 1.09, "high": 1.11}

    told = compare(BASE, changed(figures__time_ms__kernel=slower))

    assert "1 figure differs beyond the intervals" in told["summary"]
    assert told["lines"] == ["kernel: 1 [0.99, 1.01] ms earlier, 1.1 [1.09, 1.11] now (+10.0%)"]


def test_another_device_is_said_and_its_times_are_not_compared():
    slower = {"median": 9.0, "low": 8.9, "high": 9.1}

    told = compare(
        BASE, changed(environment__device="NVIDIA L40S", figures__time_ms__kernel=slower)
    )

    assert told["lines"] == ["device: NVIDIA H200 earlier, NVIDIA L40S now: times not compared"]


def test_a_check_that_fares_otherwise_is_told_but_not_another_wording():
    told = compare(
        BASE,
        changed(checks__racecheck="failed: a race", **{"checks__hidden inputs": "passed on 8"}),
    )

    assert told["lines"] == ["racecheck: not run: no end earlier, failed: a race now"]


@pytest.mark.parametrize(
    ("other", "word"),
    [({"source_digest": "bb"}, "another kernel"), ({"task__digest": "sha256:22"}, "another task")],
)
def test_a_certificate_of_something_else_is_not_compared(other, word):
    assert word in compare(BASE, changed(**other))["summary"]


def test_a_certificate_is_found_where_an_export_or_an_older_run_keeps_it(tmp_path):
    file = tmp_path / "certificate.json"
    older = {key: value for key, value in BASE.items() if key != "made"} | {"task": "norm"}
    file.write_text(json.dumps({"certification": {"certificate": older}}))

    assert read(file) == older
    assert compare(read(file), BASE)["summary"].startswith("agrees with the certificate:")


def test_a_file_without_one_is_refused_with_what_to_give_instead(tmp_path):
    file = tmp_path / "other.json"
    file.write_text("{}")

    with pytest.raises(NoCertificate, match=r"kernelevo certify -o FILE"):
        read(file)
    with pytest.raises(NoCertificate, match="cannot be read"):
        read(tmp_path / "missing.json")
