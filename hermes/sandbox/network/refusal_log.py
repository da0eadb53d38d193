"""Refusals of one tool call's connections, for the note in its result."""

from __future__ import annotations

from hermes.sandbox.network.proxy_event import EventKind, ProxyEvent, Reason, sentence

_MAX_KEPT = 64
_MAX_SHOWN = 8


class RefusalLog:
    """Collects the distinct refusals of a sandbox. Its `add` is a report function of the proxy."""

    def __init__(self) -> None:
        self._refusals: dict[tuple[Reason, str, int], None] = {}

    def add(self, event: ProxyEvent) -> None:
        if event.kind is EventKind.REFUSED and event.reason is not None and len(self._refusals) < _MAX_KEPT:
            self._refusals[event.reason, event.host, event.port] = None

    def hosts_to_request(self) -> tuple[str, ...]:
        """Return the refused hosts that a person could allow."""
        return tuple(dict.fromkeys(host for reason, host, _ in self._refusals if reason is Reason.NOT_LISTED))

    def note(self) -> str:
        """Return the note for the model; empty if nothing was refused."""
        lines = list(dict.fromkeys(sentence(*refusal) for refusal in self._refusals))
        if len(lines) > _MAX_SHOWN:
            lines[_MAX_SHOWN:] = [f"sandbox: {len(lines) - _MAX_SHOWN} more connections were refused"]
        if hosts := self.hosts_to_request()[:_MAX_SHOWN]:
            listed = ", ".join(f'"{host}"' for host in hosts)
            lines.append(f"To ask for permission, call the tool again with network_hosts: [{listed}].")
        return "\n".join(lines)
