"""Samples of stored profiles."""

from __future__ import annotations

from hermes.domain.change import Change, ChangeAction, ChangeAuthor


def stored_as(payload: bytes) -> Change:
    return Change(
        subject="profile/owner",
        number=1,
        at=0.0,
        author=ChangeAuthor.REVIEW,
        action=ChangeAction.EDIT,
        operation="o",
        payload=payload,
    )
