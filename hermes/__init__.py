"""Hermes: a daemon that keeps long-lived AI-agent conversations alive."""

__version__ = "0.1.0"
