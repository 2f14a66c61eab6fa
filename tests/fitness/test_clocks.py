import os
import time

from fitness.clocks import Reading, Rows, suspicion, understated_ms
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


def test_work_on_waking_up_is_no_overhead():
    """Before calls of nothing too, so that neither clock sees a difference."""
    early = [Reading(0.2, 2.3, 2.2) for _ in range(7)]

    empty = [Reading(0.0, 2.1, 2.0) for _ in range(7)]

    assert "judge's clock 2.1" in suspicion(early, empty, idle_ms=0.1)
    assert suspicion(early, empty) == "", "where much is done around each call"


def test_a_few_delayed_calls_raise_no_suspicion():
    few = [*calls(told=1.0, seen=1.1, busy=1.0)[:11], *calls(told=1.0, seen=30.0, busy=1.0)[:4]]

    assert suspicion(few, QUIET) == ""


def rows(calls, told, seen, around=0.22, jitter=0.004):
    """``seen`` is what each of the calls really takes."""
    return Rows(told, 0.22, calls, [around + calls * seen + jitter * i for i in range(3)])


def test_calls_in_a_row_give_away_what_one_hides():
    assert rows(960, told=0.006, seen=0.006).complaint() == ""
    assert rows(960, told=0.006, seen=0.0036).complaint() == "", "warm ones are faster"
    assert "tells 0.004 ms a call" in rows(960, told=0.004, seen=0.009).complaint()
    assert "clock 0.5" in rows(15, told=0.4, seen=0.5).complaint()
    assert rows(1, told=8.0, seen=8.0).complaint() == ""
    assert rows(1, told=6.5, seen=8.0).complaint()


def test_delays_hide_nothing_of_a_row():
    """What really goes by around calls is known: a worker that is slow on purpose only loses."""
    assert rows(960, told=0.004, seen=0.009, around=5.0).complaint()
    assert rows(16, told=0.02, seen=0.02, around=0.22 + 16 * 0.05).complaint(), "works on waking"


def test_where_nobody_accounts_for_the_work_a_busy_machine_is_no_excuse():
    noise = [Reading(0.0, 0.1 + 2.0 * i) for i in range(7)]
    liar = [Reading(0.5, 9.0 + 0.02 * i) for i in range(7)]

    assert "tells 0.5 ms" in suspicion(liar, noise)


def test_the_shorter_a_call_the_longer_the_row():
    assert Rows.length([Reading(0.006, 0.3)] * 7) == 1000
    assert Rows.length([Reading(0.5, 0.8)] * 7) == 12
    assert Rows.length([Reading(7.0, 7.3)] * 7) == 1
    assert Rows.length([Reading(0.0, 100.0)] * 7) == 6, "what the judge saw bounds it too"


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
