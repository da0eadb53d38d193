"""Files on their way to Telegram: pictures as pictures, recordings as voice messages, all others as documents."""

from __future__ import annotations

from pathlib import Path

from telegram import Bot, InputFile, Message
from telegram.error import BadRequest

from hermes.adapters.chat.outgoing_file import File

TOO_LARGE = "Telegram takes no files of more than 50 MB from a bot"
_PHOTO_MOST_BYTES = 10 << 20
_PHOTOS = (".jpg", ".jpeg", ".png", ".webp")
_VOICES = (".ogg", ".oga", ".opus")
_SEND_WITHIN_S = 120.0


async def upload(bot: Bot, chat: int, file: File, *, thread: int | None, caption: str) -> str:
    if (kind := _kind(file)) != "document":
        try:
            return await _sent(bot, chat, file, kind, thread=thread, caption=caption)
        except BadRequest as error:
            if not _is_about_the_file(error):
                raise
    return await _sent(bot, chat, file, "document", thread=thread, caption=caption)


def _kind(file: File) -> str:
    suffix = Path(file.name).suffix.lower()
    if suffix in _PHOTOS and len(file.data) <= _PHOTO_MOST_BYTES:
        return "photo"
    return "voice" if suffix in _VOICES else "document"


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
