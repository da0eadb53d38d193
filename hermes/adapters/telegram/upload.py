"""Files on their way to Telegram: pictures as pictures, recordings as voice messages, all others as documents."""

from __future__ import annotations

from pathlib import Path

from telegram import Bot, InputFile, Message
from telegram.error import BadRequest

from hermes.errors import UnsendableFileError
from hermes.regular_file import read_regular_file
from hermes.values import dataclass

MOST_BYTES = 50 << 20
_PHOTO_MOST_BYTES = 10 << 20
_PHOTOS = (".jpg", ".jpeg", ".png", ".webp")
_VOICES = (".ogg", ".oga", ".opus")
_SEND_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str
    data: bytes

    @property
    def kind(self) -> str:
        suffix = Path(self.name).suffix.lower()
        if suffix in _PHOTOS and len(self.data) <= _PHOTO_MOST_BYTES:
            return "photo"
        return "voice" if suffix in _VOICES else "document"


def read_file(path: str) -> File:
    """In a thread. Raises UnsendableFileError."""
    try:
        data = read_regular_file(Path(path), most_bytes=MOST_BYTES)
    except FileNotFoundError:
        raise UnsendableFileError("it is not there any more") from None
    except OSError as error:
        raise UnsendableFileError(f"it cannot be read: {error.strerror}") from error
    if not data:
        raise UnsendableFileError("it is empty")
    if len(data) > MOST_BYTES:
        raise UnsendableFileError("Telegram takes no files of more than 50 MB from a bot")
    return File(name=Path(path).name, data=data)


async def upload(bot: Bot, chat: int, file: File, *, thread: int | None, caption: str) -> str:
    if file.kind != "document":
        try:
            return await _sent(bot, chat, file, file.kind, thread=thread, caption=caption)
        except BadRequest as error:
            if not _is_about_the_file(error):
                raise
    return await _sent(bot, chat, file, "document", thread=thread, caption=caption)


async def _sent(bot: Bot, chat: int, file: File, kind: str, *, thread: int | None, caption: str) -> str:
    content = InputFile(file.data, filename=file.name)
    said = caption or None
    message: Message
    match kind:
        case "photo":
            message = await bot.send_photo(
                chat, content, caption=said, message_thread_id=thread, write_timeout=_SEND_WITHIN_S
            )
        case "voice":
            message = await bot.send_voice(
                chat, content, caption=said, message_thread_id=thread, write_timeout=_SEND_WITHIN_S
            )
        case _:
            message = await bot.send_document(
                chat, content, caption=said, message_thread_id=thread, write_timeout=_SEND_WITHIN_S
            )
    return str(message.message_id)


def _is_about_the_file(error: BadRequest) -> bool:
    """No picture or recording that Telegram can show; as a document it takes everything."""
    text = error.message.lower()
    return any(word in text for word in ("photo", "image", "voice", "wrong file", "dimensions"))
