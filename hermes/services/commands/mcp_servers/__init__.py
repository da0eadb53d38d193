"""Commands about MCP servers."""
