"""Sandboxes for tool commands: bubblewrap, seccomp, control groups and a guarded network."""
