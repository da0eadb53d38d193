"""MCP: configured servers, their tools, health of connections, and questions of servers. Pure."""
