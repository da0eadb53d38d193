"""Delivery of outbox messages to chat platforms."""
