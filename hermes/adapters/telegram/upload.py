"""File uploads to Telegram: images, voice, audio and video by their kind, all others as documents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from telegram import Bot, InputFile, Message, ReplyParameters
from telegram.error import BadRequest

from hermes.adapters.chat.outgoing_file import OutgoingFile

TOO_LARGE = "the file is larger than 50 MB, Telegram's limit for bots"
_MAX_PHOTO_BYTES = 10 << 20
_PHOTOS = (".jpg", ".jpeg", ".png", ".webp")
_KINDS = {
    ".ogg": "voice",
    ".oga": "voice",
    ".opus": "voice",
    ".mp3": "audio",
    ".m4a": "audio",
    ".mp4": "video",
}
_SEND_WITHIN_S = 120.0


async def upload(
    bot: Bot,
    chat: int,
    file: OutgoingFile,
    *,
    thread: int | None,
    caption: str,
    quoted: ReplyParameters | None = None,
) -> str:
    if (kind := _kind(file)) != "document":
        try:
            return await _sent(bot, chat, file, kind, thread=thread, caption=caption, quoted=quoted)
        except BadRequest as error:
            if not _is_about_the_file(error):
                raise
    return await _sent(bot, chat, file, "document", thread=thread, caption=caption, quoted=quoted)


def _kind(file: OutgoingFile) -> str:
    suffix = Path(file.name).suffix.lower()
    if suffix in _PHOTOS and len(file.data) <= _MAX_PHOTO_BYTES:
        return "photo"
    return _KINDS.get(suffix, "document")


async def _sent(
    bot: Bot,
    chat: int,
    file: OutgoingFile,
    kind: str,
    *,
    thread: int | None,
    caption: str,
    quoted: ReplyParameters | None,
) -> str:
    ways: Mapping[str, Callable[..., Awaitable[Message]]] = {
        "photo": bot.send_photo,
        "voice": bot.send_voice,
        "audio": bot.send_audio,
        "video": bot.send_video,
        "document": bot.send_document,
    }
    message = await ways[kind](
        chat,
        InputFile(file.data, filename=file.name),
        caption=caption or None,
        message_thread_id=thread,
        reply_parameters=quoted,
        write_timeout=_SEND_WITHIN_S,
    )
    return str(message.message_id)


def _is_about_the_file(error: BadRequest) -> bool:
    """Return True if Telegram cannot show or play this file; it can still be sent as a document."""
    text = error.message.lower()
    return any(word in text for word in ("photo", "image", "voice", "audio", "video", "wrong file", "dimensions"))
