"""Requests that people and agents answer: what is open, who has taken it, what was told.

A run's own file, ``run.sqlite``, has one writer, the run. Whoever answers writes
``answers.sqlite`` beside it, and no answer is ever deleted there: so none is lost or used twice,
whoever is killed and whenever, and answering works whether the run is going on or not.

    record      the records that pass between these modules
    answers     the file of leases and answers
    board       a run's open requests, with their leases and answers: what ask and tell work with
    postbox     where the run waits for its answers
"""
