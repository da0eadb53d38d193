"""Configuration of MCP servers."""
