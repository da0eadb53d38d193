"""Order of rules by severity, the worst first."""

from __future__ import annotations

_WORST_FIRST = """
hidden-characters hermes-control hermes-home-read secret-tree credential-write credential-read process-environment
process-attach pipe-to-shell download-and-run remote-code embedded-command network-shell data-upload prompt-write
startup-write code-injection git-config superuser system-write unresolved-command unparsable-line recursive-delete
find-delete xargs-delete outside-write outside-path unknown-path inline-code namespace docker-privileged message-bus
unix-socket
"""
_RANKS = {rule: rank for rank, rule in enumerate(_WORST_FIRST.split())}


def severity(rule: str) -> int:
    """Return a rule's rank; 0 is the worst. Unlisted rules come last."""
    return _RANKS.get(rule, len(_RANKS))
