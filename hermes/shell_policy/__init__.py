"""Shell policy: parse a command line or path and allow it, require approval or block it. Pure."""
