"""Example of a Hermes plugin."""
