"""For coding agents: a run's requests, drafts and lineage as tools of an MCP server.

tools       what an agent may do, as plain methods
drafts      judges a draft on this machine's device, without booking it to the run
server      the methods as an MCP server, by the official SDK
"""
