import itertools
import random

import pytest

from fitness.timing import Effort, interleave, interval, ratio, sample


def test_the_median_and_its_interval_ignore_outliers():
    samples = [1.0] * 50 + [1.01] * 45 + [900.0] * 5

    found = interval(samples)

    assert found.low <= found.median <= found.high
    assert found.high < 1.02


def test_few_samples_give_an_interval_that_spans_them_all():
    found = interval([3.0, 1.0, 2.0])

    assert (found.low, found.median, found.high) == (1.0, 2.0, 3.0)


def test_no_samples_is_an_error():
    with pytest.raises(ValueError, match="no samples"):
        interval([])


def test_the_interval_holds_the_true_median_about_as_often_as_it_says():
    rng = random.Random(7)
    hits = 0
    for _ in range(400):
        found = interval([rng.gauss(10, 1) for _ in range(25)])
        hits += found.low <= 10 <= found.high

    assert hits / 400 > 0.92


def test_sampling_stops_as_soon_as_the_interval_is_narrow():
    steady = sample(lambda: 1.0, Effort(least=10, most=1000, seconds=60, width=0.01))

    assert len(steady) == 10


def test_sampling_of_a_noisy_call_goes_on_to_the_cap():
    noisy = itertools.cycle([1.0, 2.0])

    times = sample(lambda: next(noisy), Effort(least=10, most=40, seconds=60, width=0.01))

    assert len(times) == 40


def test_interleaved_calls_are_made_once_a_round_in_changing_order():
    order = []

    def call(name):
        def timed():
            order.append(name)
            return 1.0

        return timed

    effort = Effort(least=20, most=20, seconds=60, width=0.0)
    times = interleave({"a": call("a"), "b": call("b")}, effort, random.Random(1))

    rounds = list(zip(order[::2], order[1::2], strict=True))
    assert all(set(pair) == {"a", "b"} for pair in rounds)
    assert {pair[0] for pair in rounds} == {"a", "b"}
    assert len(times["a"]) == len(times["b"]) == 20


def test_a_ratio_taken_round_by_round_is_immune_to_drift():
    drift = [1 + 0.1 * i for i in range(30)]

    found = ratio([2 * d for d in drift], drift)

    assert found.low == pytest.approx(2)
    assert found.high == pytest.approx(2)
