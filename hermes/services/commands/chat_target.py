"""Chats that a conversation can move to: those that Hermes knows from its sessions, if the person may use them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.session.state import Session
from hermes.domain.source import ChatContext, Place
from hermes.domain.text.title import clean_title
from hermes.domain.values import dataclass, replace
from hermes.services.commands.context import CommandContext

_PAGE = 200
_MAX_READ = 2000  # sessions, last active first


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTarget:
    key: SessionKey
    place: Place
    label: str = ""  # names as the platform reports them: untrusted, for display and search only

    @property
    def name(self) -> str:
        """Return the chat as people type it."""
        thread = f":{self.place.thread}" if self.place.thread else ""
        return f"{self.place.chat}{thread}"

    @property
    def tail(self) -> str:
        """Return the key without its beginning, which tells two people in one chat apart."""
        return self.key.removeprefix(f"agent:main:{self.place.platform}:")


async def usable_targets(context: CommandContext, platforms: Collection[str]) -> list[ChatTarget]:
    """Return the chats that the person may move a conversation to, last active first.

    The owner and admins may use every known chat, other people those in which a conversation is theirs.
    """
    found: dict[SessionKey, ChatTarget] = {}
    caller = context.caller
    after: SessionId | None = None
    for _ in range(_MAX_READ // _PAGE):
        page = await context.sessions.recent(_PAGE, after)
        for session in page:
            if caller.role.approves or (caller.source.user and caller.may_take(session)):
                for target in _places_of(session):
                    if target.place.platform in platforms:
                        known = found.setdefault(target.key, target)
                        found[target.key] = replace(known, label=known.label or target.label)
        if len(page) < _PAGE:
            break
        after = page[-1].id
    return list(found.values())


def matching(targets: Iterable[ChatTarget], platform: str, wanted: str) -> list[ChatTarget]:
    """Return the chats that these words mean: by id, by key, else by name."""
    there = [each for each in targets if each.place.platform == platform]
    meant = wanted.casefold()
    by_id = [each for each in there if wanted in (each.name, each.key, each.tail)]
    return (
        by_id
        or [each for each in there if each.place.chat == wanted]
        or [each for each in there if each.label.casefold() == meant]
        or [each for each in there if meant in each.label.casefold()]
    )


def _places_of(session: Session) -> Iterable[ChatTarget]:
    """Return the chat of a session, or both of one that was handed over."""
    if (moved := session.handover) is not None:
        yield ChatTarget(key=moved.key, place=_chat(moved.place))
        if moved.origin is not None and moved.origin_key:
            yield ChatTarget(key=moved.origin_key, place=_chat(moved.origin), label=_label(session.company))
    elif session.place is not None and session.key.startswith(f"agent:main:{session.place.platform}:"):
        yield ChatTarget(key=session.key, place=_chat(session.place), label=_label(session.company))


def _chat(place: Place) -> Place:
    return replace(place, message="")


def _label(company: ChatContext | None) -> str:
    names = () if company is None else (company.chat, company.person)
    return ", ".join(dict.fromkeys(filter(None, map(clean_title, names))))
