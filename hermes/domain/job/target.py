"""Delivery targets of a report, as people write them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

from hermes.domain.errors import BadInputError
from hermes.domain.job.job import ALL, HOME, LOCAL, ORIGIN
from hermes.domain.values import dataclass

_WORDS: Final = (ORIGIN, LOCAL, HOME, ALL)
_MAX: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A word, or a chat of a platform. Without a chat, the platform's home channel."""

    word: str = ""
    platform: str = ""
    chat: str = ""
    thread: str = ""


def parse_targets(texts: Iterable[str], platforms: Collection[str]) -> tuple[str, ...]:
    """Return the targets in their written form, each once. Raises BadInputError."""
    found = [part.strip() for text in texts for part in text.split(",")]
    targets = tuple(dict.fromkeys(part for part in found if part))
    if not 1 <= len(targets) <= _MAX:
        raise _bad(f"deliver needs 1 to {_MAX} targets")
    for each in targets:
        target = parse_target(each)
        if target.word or target.platform in platforms:
            continue
        near = get_close_matches(target.platform, [*platforms, *_WORDS], n=1)
        known = f"did you mean {near[0]}?" if near else f"known: {', '.join([*_WORDS, *sorted(platforms)])}"
        raise _bad(f"cannot deliver to {each[:80]!r}: {known}")
    return targets


def parse_target(text: str) -> Target:
    platform, _, rest = text.partition(":")
    if not rest and platform.lower() in _WORDS:
        return Target(word=platform.lower())
    chat, _, thread = rest.partition(":")
    return Target(platform=platform.lower(), chat=chat, thread=thread)


def _bad(problem: str) -> BadInputError:
    return BadInputError(problem, param="deliver", code="bad_target")
