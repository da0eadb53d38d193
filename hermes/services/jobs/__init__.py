"""Services of scheduled jobs."""
