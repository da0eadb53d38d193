"""Operating-system processes: foreground children, and background commands below a shim."""
