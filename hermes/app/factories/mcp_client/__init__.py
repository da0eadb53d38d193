"""Factory of the MCP client."""
