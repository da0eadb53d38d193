"""Network of a sandbox: a proxy in the daemon that applies the host list."""
