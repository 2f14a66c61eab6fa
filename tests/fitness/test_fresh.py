"""Arguments for timed calls: never seen before, and still what the operator takes."""

import random

import torch

from fitness.domains import Domain, Kind
from fitness.fresh import freshened

REAL = Domain(Kind.REAL)


def fresh(leaf, domain=REAL, seed=1):
    return freshened({"x": leaf}, {"x": domain}, random.Random(seed))["x"]


def test_real_numbers_are_others_of_the_same_size():
    leaf = torch.randn(1000, 64)
    found = fresh(leaf)

    assert found.shape == leaf.shape
    assert not (found.view(-1)[:, None] == leaf.view(-1)[:50]).any()
    assert 0.75 < found.std() / leaf.std() <= 1


def test_ratios_of_neighbours_are_not_those_of_the_content():
    leaf = torch.rand(4096) + 0.5
    found = fresh(leaf)
    ratios, known = (t[1:] / t[:-1] for t in (found, leaf))

    gaps = (ratios[:, None] - known).abs().amin(dim=0)
    assert (gaps[:200] > 1e-6).float().mean() > 0.2
    rolled = torch.stack([known.roll(step) for step in range(0, 4095, 5)])
    assert not (rolled - ratios).abs().amax(dim=1).lt(1e-3).any()


def test_what_lies_between_bounds_still_does():
    leaf = torch.rand(100, 7)
    for seed in range(20):
        found = fresh(leaf, Domain(Kind.UNIT), seed)
        assert found.min() >= 0
        assert found.max() <= 1


def test_integers_move_but_stay_the_same_numbers():
    leaf = torch.arange(1000) % 17
    found = fresh(leaf, Domain(Kind.INTEGER, low=0, high=16))

    assert not torch.equal(found, leaf)
    assert torch.equal(found.sort().values, leaf.sort().values)


def test_probabilities_still_sum_to_one_and_permutations_are_permutations():
    simplex = torch.softmax(torch.randn(8, 50), dim=1)
    moved = fresh(simplex, Domain(Kind.SIMPLEX, dim=1))
    permutation = torch.stack([torch.randperm(20) for _ in range(4)])
    turned = fresh(permutation, Domain(Kind.PERMUTATION, low=0, high=19))

    assert torch.allclose(moved.sum(dim=1), torch.ones(8))
    assert torch.equal(turned.sort(dim=1).values, torch.arange(20).expand(4, 20))


def test_sorted_offsets_masks_and_patterns_keep_their_form():
    offsets = torch.tensor([0, 3, 9, 12])
    assert torch.equal(fresh(offsets, Domain(Kind.INTEGER, high=12, ordered=True)), offsets)
    mask = torch.tensor([True, False, True])
    assert torch.equal(fresh(mask, Domain(Kind.BOOL)), mask)
    triangle = torch.tril(torch.randn(9, 9))
    found = fresh(triangle, Domain(Kind.REAL, pattern=triangle != 0))
    assert torch.equal(found != 0, triangle != 0)
    assert not torch.equal(found, triangle)
