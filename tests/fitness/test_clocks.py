import os
import time

from fitness.clocks import Reading, disagreement, suspicion, understated_ms
from fitness.witness import usage

QUIET = [Reading(0.0, 0.1 + 0.01 * i, 0.02) for i in range(7)]
BUSY = [Reading(0.0, 0.1 + 2.0 * i, 0.02, 3.0) for i in range(7)]


def calls(told, seen, busy, delay=0.0):
    return [Reading(told, seen + 0.02 * i, busy, delay) for i in range(15)]


def test_clocks_that_agree_but_for_the_overhead_are_believed():
    assert suspicion(calls(told=1.0, seen=1.12, busy=1.02), QUIET) == ""


def test_on_a_quiet_machine_the_judges_clock_decides():
    complaint = suspicion(calls(told=0.5, seen=1.12, busy=0.5), QUIET)

    assert "tells 0.5 ms" in complaint
    assert "judge's clock 1" in complaint


def test_a_busy_machine_does_not_make_an_honest_kernel_a_liar():
    assert suspicion(calls(told=1.0, seen=9.0, busy=1.01, delay=4.0), BUSY) == ""


def test_also_on_a_busy_machine_the_cpu_time_gives_a_liar_away():
    assert suspicion(calls(told=0.5, seen=9.0, busy=3.0, delay=4.0), BUSY)


def test_a_few_delayed_calls_raise_no_suspicion():
    few = [*calls(told=1.0, seen=1.1, busy=1.0)[:11], *calls(told=1.0, seen=30.0, busy=1.0)[:4]]

    assert suspicion(few, QUIET) == ""


def in_a_row(told, seen):
    return [Reading(told, seen + 0.0005 * i, calls=16) for i in range(7)]


def test_many_calls_in_a_row_give_away_what_one_hides():
    empty = in_a_row(told=0.0, seen=0.1)

    assert suspicion(in_a_row(told=0.02, seen=0.121), empty) == ""
    assert "tells 0.001 ms" in suspicion(in_a_row(told=0.001, seen=0.12), empty)


def test_a_call_alone_cannot_be_much_faster_than_in_a_row():
    alone = calls(told=0.004, seen=0.2, busy=0.0)

    assert "0.004 ms of a call alone, 0.02 ms" in disagreement(alone, in_a_row(0.02, 0.12))
    assert disagreement(alone, in_a_row(0.006, 0.11)) == ""
    assert disagreement(calls(0.5, 0.6, 0.0), in_a_row(0.02, 0.12)) == ""
    assert disagreement(alone, []) == ""


def test_a_small_lie_is_made_good_from_the_cpu_time():
    honest, liar = (calls(told=told, seen=0.12, busy=0.06) for told in (0.04, 0.005))

    assert understated_ms(honest, QUIET) == 0
    assert abs(understated_ms(liar, QUIET) - 0.035) < 1e-9


def test_the_system_counts_the_cpu_time_of_a_process():
    before = usage(os.getpid())
    started = time.process_time()
    while time.process_time() - started < 0.05:
        pass

    spent = usage(os.getpid()).since(before)

    assert 45 < spent.cpu_ms < 5000
    assert spent.busy_ms(cpus=1) >= spent.cpu_ms
    assert spent.busy_ms(cpus=1000) >= max(spent.threads_ms.values())
