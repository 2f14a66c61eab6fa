"""The tools as an MCP server on standard input and output, by the official Python SDK."""

from __future__ import annotations

import functools
from typing import Any

from cuda_sandbox.errors import UserError
from evo import __version__
from evo.agents.tools import Tool, Tools

INSTRUCTIONS = """\
kernelevo evolves GPU and CPU kernels. A run asks for optimisation ideas and for kernel source; each
request is a self-contained prompt. Take one with `ask`, think, try drafts with `judge_draft` where
this machine has the device, then answer with `tell` in the form that the prompt asks for. Repeat
until `ask` has none. Answer from the prompt and your own knowledge alone.
"""


class NoSdk(UserError):
    """The MCP SDK is not installed."""


def serve(run: str | None) -> None:
    """Serve until standard input ends. ``run`` is the run that is meant where none is named."""
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp_types import ToolAnnotations
    except ImportError as error:
        raise NoSdk(f"{error}: install the SDK with: pip install 'kernelevo[mcp]'") from error
    tools = Tools(run)
    server = MCPServer(
        "kernelevo", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    for tool in tools.looking:
        server.tool(annotations=ToolAnnotations(read_only_hint=True))(_told(tool))
    for tool in tools.acting:
        server.tool(annotations=ToolAnnotations(open_world_hint=False))(_told(tool))
    try:
        server.run("stdio")
    finally:
        tools.close()


def _told(tool: Tool) -> Tool:
    """The same with our errors as the SDK's: what we say to people, the agent may read."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def call(*arguments: Any, **named: Any) -> dict[str, Any]:
        try:
            return tool(*arguments, **named)
        except UserError as error:
            raise ToolError(str(error)) from error

    return call
