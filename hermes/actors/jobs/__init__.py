"""Actor of scheduled jobs."""
