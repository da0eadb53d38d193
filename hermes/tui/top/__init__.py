"""Live view of the daemon, `hermes top`: sessions, actors, processes and platforms, and their figures."""
