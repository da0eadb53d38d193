"""Scheduled jobs over the API."""
