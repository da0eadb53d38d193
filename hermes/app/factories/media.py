"""Factory of the media store and the transcription client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hermes.config.home import Home
from hermes.config.log import redact
from hermes.config.settings import Config
from hermes.media.store import MediaLimits, MediaStore
from hermes.ports.chat import ChatAdapter, FileSource
from hermes.system import clock as wall_clock

if TYPE_CHECKING:
    from hermes.media.reception import Reception, Transcribe

_MB = 1 << 20
_DAY_S = 86_400.0


def media_store(config: Config, home: Home) -> MediaStore:
    media = config.media
    limits = MediaLimits(
        file_bytes=media.max_file_mb * _MB, total_bytes=media.max_total_mb * _MB, keep_s=media.keep_days * _DAY_S
    )
    return MediaStore(home.media_dir, limits=limits, clock=wall_clock.wall)


def make_transcriber(config: Config, environ: Mapping[str, str]) -> Transcribe | None:
    """Make the transcription client; None without an endpoint. Raises ConfigError."""
    settings = config.transcription
    if not settings.base_url:
        return None
    from hermes.media.transcription import Transcriber, TranscriptionSettings  # noqa: PLC0415 - off by default

    key = settings.api_key(environ)
    if key is not None:
        redact(key)
    return Transcriber(
        TranscriptionSettings(base_url=settings.base_url, model=settings.model, key=key, timeout_s=settings.timeout_s)
    )


def make_reception(adapter: ChatAdapter, config: Config, home: Home, environ: Mapping[str, str]) -> Reception | None:
    """Make the file reception of a platform; None if its files cannot be fetched."""
    if not isinstance(adapter, FileSource):
        return None
    from hermes.media.reception import Reception  # noqa: PLC0415 - not needed without a platform

    return Reception(media_store(config, home), source=adapter, transcribe=make_transcriber(config, environ))
