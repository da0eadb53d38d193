"""Ports to the client of MCP servers."""
