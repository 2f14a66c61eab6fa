"""Which ideas say again what was said before."""

from __future__ import annotations

import pytest

from cuda_sandbox.kernel import Kernel
from cuda_sandbox.report import Status
from fitness.evaluation import Evaluation
from operators.author import Specimen, Tried
from operators.idea import Category, Idea
from operators.writing.novelty import repeats, sift


def idea(text: str) -> Idea:
    return Idea(text, Category.MEMORY, "llm")


def parent(*ancestry: str) -> Specimen:
    kernel = Kernel("int a;\n", "cuda")
    return Specimen("0-0-0", kernel, Evaluation(Status.OK), tuple(map(idea, ancestry)))


LOADS = "Vectorised loads: read x as float4 so that each thread issues 16-byte accesses"


@pytest.mark.parametrize(
    "again",
    [
        LOADS,
        LOADS.upper(),
        "Vectorized load: each thread reads x as float4, so it issues 16-byte accesses.",
        "Vectorised loads, reading x as float4 so each thread can issue accesses of 16 byte",
    ],
)
def test_the_same_in_other_words_is_a_repetition(again: str) -> None:
    assert repeats(idea(again), [idea("something else"), idea(LOADS)]) == idea(LOADS)


@pytest.mark.parametrize(
    "other",
    [
        "Vectorised stores: write out as float4 so that each thread issues 16-byte accesses",
        "Asynchronous copies: read x into shared memory by cp.async so that loads overlap",
        "Persistent blocks: launch one block per SM and loop over rows",
    ],
)
def test_something_else_is_none(other: str) -> None:
    assert repeats(idea(other), [idea(LOADS)]) is None


def test_a_title_of_some_length_is_enough() -> None:
    one = idea("Prefetch the next row by bulk copies: two buffers in shared memory, a barrier each")
    other = idea("Prefetch next row with bulk copies: while this one is reduced, as the SM idles")
    assert repeats(other, [one]) == one
    short = idea("Fuse: keep the row in registers")
    assert repeats(idea("Fuse: merge the two kernels into a single launch"), [short]) is None


def test_other_numbers_are_another_idea() -> None:
    four = idea("Use 4 warps per row and 8 rows per block")
    assert repeats(idea("Use 16 warps per row and 2 rows per block"), [four]) is None


def test_what_is_in_the_kernel_or_was_tried_on_it_is_not_new() -> None:
    tried = [
        Tried(idea("Unroll the inner loop by eight to hide latency"), "ok", 0.97),
        Tried(idea("Keep the whole row in registers"), "ok", 1.4, here=False),
    ]
    mine = [
        idea(LOADS),
        idea("Unrolling the inner loop by eight, hiding latency"),
        idea("Keep the whole row in registers"),
    ]
    found = sift(mine, parent(LOADS), tried)
    assert found.fresh == (mine[2],)  # it did well on another kernel, and this one lacks it
    assert found.repeated == ((mine[0], idea(LOADS)), (mine[1], tried[0].idea))


def test_what_failed_may_come_again_in_other_words() -> None:
    failed = Tried(idea("Cluster of two blocks for a row"), "timeout: 12 s", None)
    same = idea("A cluster of two blocks for each row")
    mended = idea("Cluster of two blocks for a row, ending with a cluster barrier this time")
    found = sift([same, mended], parent(), [failed])
    assert found.fresh == (mended,)
    assert found.repeated == ((same, failed.idea),)


def test_an_answer_does_not_repeat_itself() -> None:
    found = sift([idea(LOADS), idea(LOADS.lower())], parent(), [])
    assert found.fresh == (idea(LOADS),)


def test_further_ideas_repeat_neither_the_first_nor_what_was_dropped() -> None:
    first = sift([idea(LOADS), idea("Use one wave of blocks only")], parent(LOADS), [])
    more = [idea(LOADS), idea("use one wave of blocks only"), idea("Halve the precision of x")]
    found = first.and_then(more)
    assert [one.text for one in found.fresh] == [
        "Use one wave of blocks only",
        "Halve the precision of x",
    ]
    assert len(found.repeated) == 3
