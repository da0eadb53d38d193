"""The daemon as a process of the operating system: signals, systemd, orphaned processes, a refused start."""
