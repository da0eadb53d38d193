"""Text of an MCP result for the model. Binary content becomes a file in the conversation's folder."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from hermes.system.tool_readable import create_readable_file, make_readable_directory

MAX_TEXT: Final = 8 << 20  # characters kept of one result; longer than a note to the model ever is
MAX_FILE: Final = 16 << 20  # bytes
MAX_BLOCKS: Final = 1_000
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


class ResultFiles:
    """Files that the binary parts of one result become. Blocking."""

    def __init__(self, folder: Path, call: str) -> None:
        self._folder = folder / "outputs"
        self._name = f"mcp-{_UNSAFE.sub('_', call)[:80]}"
        self._count = 0

    def keep(self, encoded: str, media_type: str) -> str:
        """Store base64 data and return a note about it."""
        if len(encoded) > MAX_FILE * 4 // 3 + 4:
            return f"[{media_type or 'data'} of more than {MAX_FILE >> 20} MB was left out]"
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return f"[{media_type or 'data'} that is not valid base64 was left out]"
        suffix = mimetypes.guess_extension(media_type.partition(";")[0].strip()) or ".bin"
        try:
            return f"[{media_type or 'data'}, {len(data):,} bytes, stored in {self._store(data, suffix)}]"
        except OSError as error:
            return f"[{media_type or 'data'}, {len(data):,} bytes, could not be stored: {error.strerror}]"

    def _store(self, data: bytes, suffix: str) -> Path:
        make_readable_directory(self._folder)
        while True:
            self._count += 1
            path = self._folder / f"{self._name}-{self._count}{suffix}"
            try:
                descriptor = create_readable_file(path)
            except FileExistsError:
                continue
            with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
                file.write(data)
            return path


def call_text(result: Any, files: ResultFiles) -> str:
    """Return the text of a tool's result. Structured content is added where no text says the same."""
    text = _joined(result.content, files)
    structured = result.structured_content
    if structured is None:
        return text
    said = json.dumps(structured, ensure_ascii=False, default=str)
    return _cut(said if not text else text if _same(text, structured) else f"{text}\n{said}")


def resource_text(result: Any, files: ResultFiles) -> str:
    return _cut("\n".join(_resource(each, files) for each in result.contents[:MAX_BLOCKS]))


def prompt_text(result: Any, files: ResultFiles) -> str:
    parts = [f"[{each.role}]\n{_block(each.content, files)}" for each in result.messages[:MAX_BLOCKS]]
    return _cut("\n\n".join(parts))


def _joined(blocks: Iterable[Any], files: ResultFiles) -> str:
    return _cut("\n".join(_block(each, files) for each in list(blocks)[:MAX_BLOCKS]))


def _block(block: Any, files: ResultFiles) -> str:
    match getattr(block, "type", ""):
        case "text":
            return str(block.text)
        case "image" | "audio":
            return files.keep(block.data, block.mime_type or "")
        case "resource_link":
            about = f": {block.description}" if block.description else ""
            return f"[resource {block.name} at {block.uri}{about}]"
        case "resource":
            return _resource(block.resource, files)
        case kind:
            return f"[content of the unknown type {str(kind)[:40]}]"


def _resource(content: Any, files: ResultFiles) -> str:
    text = getattr(content, "text", None)
    if isinstance(text, str):
        return text
    return f"{content.uri}: {files.keep(getattr(content, 'blob', ''), content.mime_type or '')}"


def _same(text: str, structured: Any) -> bool:
    """Return whether a text is the structured content once more, as the protocol recommends."""
    try:
        said = json.loads(text)
    except ValueError:
        return isinstance(structured, dict) and list(structured.values()) == [text]
    return bool(said == structured or (isinstance(structured, dict) and list(structured.values()) == [said]))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n[the rest of the result was left out]"
