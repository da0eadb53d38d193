"""Scheduled jobs: their times, their state and their runs. Pure."""
