"""Commands about work over several turns: goals and checkpoints."""
