"""Hermes as an MCP server: conversations, messages, events and approvals as tools of other programs."""
