"""Serve a run's requests, drafts and lineage to coding agents (MCP)."""

from __future__ import annotations

import click


@click.command()
@click.option("--run", metavar="RUN", help="The run that is meant where a call names none.")
def command(run: str | None) -> None:
    """Serve tools over MCP on standard input and output, for a coding agent to start.

    The agent can take requests and answer them, have drafts judged on this machine's device
    without booking them to the run, and look at runs, lineage, trajectory and kernels.

    Example: kernelevo mcp --run softmax-h200
    """
    from evo.agents.server import serve
    from evo.runs import resolve

    serve(str(resolve(run).resolve()) if run else None)
