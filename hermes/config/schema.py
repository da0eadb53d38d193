"""Declaration of a setting: a dataclass field with a default and a rule for its values."""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value: TypeAlias = bool | int | float | str | tuple[str, ...]
T = TypeVar("T", bool, int, float, str, tuple[str, ...])

# Settings of earlier versions. They are ignored with a warning, so that an old configuration still starts.
RETIRED: frozenset[str] = frozenset(
    {
        "agent.max_parallel_tools",
        "api.body_timeout_s",
        "api.header_timeout_s",
        "chat.fresh_final_after_s",
        "model.local_max_tokens",
        "resume.per_second",
        "sessions.max_waiting",
        "tools.max_output_bytes",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Constraint on a value, beyond its type."""

    least: float = 0  # bounds of a number
    most: float = 0
    choices: tuple[str, ...] = ()
    complaint: Callable[[str], str] | None = None  # returns the problem of a text, or an empty text
    together: Callable[[tuple[str, ...]], str] | None = None  # the same for a whole list
    path: bool = False  # relative to the configuration file
    live: bool = False  # can change while the daemon runs
    also: Callable[[str], object] | None = None  # returns a true value for a further choice
    entries: bool = False  # a list of mappings, or a mapping by name; each is kept as JSON


# Sections whose other keys are entries of one setting: `quick_commands: {disk: {...}}`.
OPEN_SECTIONS: Mapping[str, str] = {
    "hooks": "hooks.events",
    "quick_commands": "quick_commands.commands",
}


def setting(
    default: T,
    *,
    least: float = 0,
    most: float = 0,
    choices: tuple[str, ...] = (),
    complaint: Callable[[str], str] | None = None,
    together: Callable[[tuple[str, ...]], str] | None = None,
    path: bool = False,
    live: bool = False,
    also: Callable[[str], object] | None = None,
    entries: bool = False,
) -> T:
    rule = Rule(
        least=least,
        most=most,
        choices=choices,
        complaint=complaint,
        together=together,
        path=path,
        live=live,
        also=also,
        entries=entries,
    )
    value: T = field(default=default, metadata={"rule": rule})
    return value


def shaped(shape: str, problem: str) -> Callable[[str], str]:
    """Return the check that a whole text matches a pattern."""
    return lambda text: "" if re.fullmatch(shape, text) else problem


address_complaint = shaped(
    r"(https?://[^\s/@]+(/[^\s@]*)?)?", "must be an address like https://host, without a token or password"
)
host_complaint = shaped(r"[A-Za-z0-9._:%\[\]-]+", "must be a host name or address, without a scheme")
