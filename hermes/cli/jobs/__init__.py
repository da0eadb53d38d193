"""Commands on scheduled jobs."""
