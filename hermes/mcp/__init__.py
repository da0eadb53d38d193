"""MCP client: supervised connections to MCP servers, and their tools. The first connection imports the SDK."""
