"""Ports of scheduled jobs."""
