"""An endpoint writes voices down, or what is wrong with it is said in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config.secret import Secret
from hermes.domain.errors import PlatformError
from hermes.media.transcription import Transcriber, TranscriptionSettings
from hermes.ports.chat import Attachment
from tests.support.transcription_server import TranscriptionServer

OGG = b"OggS" * 500_000
VOICE = Attachment(kind="voice", file_id="1", media_type="audio/ogg")


@pytest.fixture
def server() -> Iterator[TranscriptionServer]:
    with TranscriptionServer() as server:
        yield server


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    path = tmp_path / "voice.ogg"
    path.write_bytes(OGG)
    return path


def transcriber(server: TranscriptionServer, timeout_s: float = 30.0) -> Transcriber:
    return Transcriber(
        TranscriptionSettings(base_url=server.base_url, model="m", key=Secret("sesame"), timeout_s=timeout_s)
    )


async def test_a_voice_is_written_down(server: TranscriptionServer, voice: Path) -> None:
    assert await transcriber(server)(voice, VOICE) == "hello from a voice"
    assert server.asked == [("m", "sound.ogg", OGG, "Bearer sesame")]


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (500, b"", "status 500"),
        (302, b"", "status 302"),
        (200, b"<html>", "invalid answer"),
        (200, b'{"text": 1}', "invalid answer"),
        (200, b"1" * (2 << 20), "invalid answer"),
    ],
)
async def test_a_bad_answer_is_explained(
    status: int, body: bytes, problem: str, server: TranscriptionServer, voice: Path
) -> None:
    server.status, server.body = status, body
    with pytest.raises(PlatformError, match=problem):
        await transcriber(server)(voice, VOICE)


async def test_an_endpoint_that_is_slow_or_away_is_explained(server: TranscriptionServer, voice: Path) -> None:
    server.delay_s = 60
    with pytest.raises(PlatformError, match="timed out after"):
        await transcriber(server, timeout_s=0.1)(voice, VOICE)
    away = Transcriber(TranscriptionSettings(base_url="http://127.0.0.1:9/v1", model="m"))
    with pytest.raises(PlatformError, match="could not reach"):
        await away(voice, VOICE)
