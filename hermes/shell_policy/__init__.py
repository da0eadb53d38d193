"""Deciding on a command line or a path before it is used: parsed, judged, allowed, asked about or blocked. Pure."""
