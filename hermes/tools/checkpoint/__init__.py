"""Checkpoints of working directories, as git objects outside of them."""
