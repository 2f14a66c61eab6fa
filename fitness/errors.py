"""The error of a task that cannot be used: below everything here that may find that out."""

from __future__ import annotations

from cuda_sandbox.errors import UserError


class TaskError(UserError):
    """A task that cannot be used: the message names the file, the line if known, a remedy."""


class UnfitTask(TaskError):
    """A task that runs, but by which no kernel can be judged: it is random, or not finite."""
