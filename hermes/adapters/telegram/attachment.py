"""Files in a Telegram message, and text for stickers, contacts, locations and polls. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.adapters.chat.utf16 import sound
from hermes.ports.chat import Attachment, Foreign, ForeignKind

_PICTURE_SIDE = 1600  # pixels; Telegram offers several sizes, and models need no larger one
_KINDS = {  # an animation is also a document and has to come first
    "voice": "voice",
    "audio": "audio",
    "video_note": "video",
    "video": "video",
    "animation": "video",
    "document": "file",
}
FILE_FIELDS = ("photo", *_KINDS)  # fields of a message
_TYPES = {"voice": "audio/ogg", "video_note": "video/mp4"}  # default types where Telegram gives none


def attachments_of(message: Mapping[str, Any]) -> tuple[Attachment, ...]:
    """Return the attachment of a message, if any. Each picture of an album is a separate message."""
    if sizes := message.get("photo"):
        size = _fitting(sizes)
        return (
            Attachment(
                kind="image",
                file_id=str(size["file_id"]),
                media_type="image/jpeg",
                size_bytes=int(size.get("file_size") or 0),
            ),
        )
    name = next((name for name in _KINDS if name in message), "")
    return (_file(message[name], name),) if name else ()


def foreign_of(message: Mapping[str, Any]) -> tuple[Foreign, ...]:
    """Describe a sticker, contact, location or poll. The sender did not write these texts."""
    for kind, name, describe in _DESCRIBED:
        if about := message.get(name):
            return (Foreign(kind=kind, text=sound(describe(about))),)
    return ()


def _sticker(sticker: Mapping[str, Any]) -> str:
    of_set = f' from the set "{sticker["set_name"]}"' if sticker.get("set_name") else ""
    return f"{sticker.get('emoji') or 'no emoji'}{of_set}"


def _contact(contact: Mapping[str, Any]) -> str:
    name = " ".join(filter(None, (contact.get("first_name"), contact.get("last_name"))))
    return f"{name}, {contact.get('phone_number', 'no number')}"


def _venue(place: Mapping[str, Any]) -> str:
    return f"{place.get('title')}, {place.get('address')} ({_coordinates(place.get('location') or {})})"


def _poll(poll: Mapping[str, Any]) -> str:
    options = " / ".join(str(option.get("text")) for option in poll.get("options") or ())
    return f"{poll.get('question')} ({options})"


def _coordinates(where: Mapping[str, Any]) -> str:
    return f"{where.get('latitude')}, {where.get('longitude')}"


_DESCRIBED = (  # a venue also has a location and has to come first
    (ForeignKind.STICKER, "sticker", _sticker),
    (ForeignKind.CONTACT, "contact", _contact),
    (ForeignKind.LOCATION, "venue", _venue),
    (ForeignKind.LOCATION, "location", _coordinates),
    (ForeignKind.POLL, "poll", _poll),
)


def _file(about: Mapping[str, Any], name: str) -> Attachment:
    media_type = str(about.get("mime_type") or _TYPES.get(name, "")).lower()
    return Attachment(
        kind="image" if name == "document" and media_type.startswith("image/") else _KINDS[name],
        file_id=str(about["file_id"]),
        name=sound(str(about.get("file_name") or "")),
        media_type=media_type,
        size_bytes=int(about.get("file_size") or 0),
        seconds=int(about.get("duration") or 0),
    )


def _fitting(sizes: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    fitting = [size for size in sizes if max(_sides(size)) <= _PICTURE_SIDE]
    return max(fitting, key=_sides) if fitting else min(sizes, key=_sides)


def _sides(size: Mapping[str, Any]) -> tuple[int, int]:
    return int(size.get("width") or 0), int(size.get("height") or 0)
