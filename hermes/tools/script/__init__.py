"""Scripts of the agent that call tools."""
