"""Conversion of a response body to text: document type, character set, readable text.

Rules:
- The Content-Type decides the document type; if it is not useful, the first bytes decide.
- Decompressed data has the same size limit as the body.
- Types without text (images, archives, programs) are refused.
"""

from __future__ import annotations

import codecs
import io
import json
import logging
import re
import zlib
from typing import Any, Final

from hermes.domain.values import dataclass
from hermes.tools.web.page import readable

MAX_TEXT_CHARS: Final = 2_000_000
MAX_PDF_PAGES: Final = 500

_BOMS: Final = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_META: Final = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([a-z0-9_:.-]{2,40})""", re.IGNORECASE)
_DECLARATION: Final = re.compile(rb"""<\?xml[^>]{0,100}encoding\s*=\s*["']([a-z0-9_:.-]{2,40})""", re.IGNORECASE)
# Character sets used on the web. Python has more codecs, and some of them are dangerous.
_CHARSET: Final = re.compile(
    r"utf-?(8|16|16-?le|16-?be)|us-ascii|ascii|iso-?8859-?\d{1,2}|latin-?\d|windows-\d{3,4}|cp\d{3,4}|koi8-[ru]"
    r"|macintosh|x-mac-cyrillic|gb2312|gbk|gb18030|big5(-hkscs)?|euc-(jp|kr|tw)|shift[_-]?jis|sjis|iso-2022-jp|tis-620"
)
_NOT_SHOWN: Final = {  # control characters, and invisible ones that can hide or reorder text
    **{code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\n"},
    **dict.fromkeys((0xAD, 0x200B, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A))),
    **dict.fromkeys(range(0xE0000, 0xE0080)),
}


class DocumentUnreadableError(Exception):
    """The document has no readable text; the message gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    kind: str  # html, pdf, json, text
    text: str
    title: str = ""


def read_document(body: bytes, *, url: str, content_type: str, encoding: str, max_bytes: int) -> Document:
    """Return the document. `content_type` and `encoding` are the Content-Type and Content-Encoding headers."""
    body = inflate(body, encoding, max_bytes)
    kind = kind_of(content_type, body)
    if kind == "pdf":
        title, text = _read_pdf(body)
    else:
        text = decode(body, content_type)
        title = ""
    if kind == "html":
        title, text = readable(text, url)
    elif kind == "json":
        text = _pretty(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_NOT_SHOWN)[:MAX_TEXT_CHARS]
    return Document(kind=kind, text=text, title=" ".join(title.translate(_NOT_SHOWN).split())[:300])


def inflate(body: bytes, encoding: str, max_bytes: int) -> bytes:
    for name in reversed([each.strip().lower() for each in encoding.split(",") if each.strip()]):
        if name in ("gzip", "x-gzip"):
            body = _inflated(body, 31, max_bytes)
        elif name == "deflate":  # some servers omit the zlib header
            wrapped = len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
            body = _inflated(body, 15 if wrapped else -15, max_bytes)
        elif name != "identity":
            raise DocumentUnreadableError(f"the server used the encoding {name[:20]!r}, which was not requested")
    return body


def _inflated(body: bytes, window: int, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    room = max_bytes
    while body:
        engine = zlib.decompressobj(window)
        try:
            part = engine.decompress(body, room + 1)
        except zlib.error as error:
            if parts:  # padding after the last member
                break
            raise DocumentUnreadableError("its compressed data is damaged") from error
        room -= len(part)
        if room < 0:
            raise DocumentUnreadableError(f"it is larger than {max_bytes // 2**20} MB when decompressed")
        parts.append(part)
        if not engine.eof:
            break  # truncated: show what arrived
        body = engine.unused_data
    return b"".join(parts)


def kind_of(content_type: str, body: bytes) -> str:
    name = content_type.partition(";")[0].strip().lower()
    start = body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if body[:5] == b"%PDF-":
        return "pdf"
    if name in ("text/html", "application/xhtml+xml"):
        return "html"
    if name == "application/json" or name.endswith("+json"):
        return "json"
    if name and not _may_be_text(name):
        raise DocumentUnreadableError(f"its type {name[:80]} has no text")
    if b"\0" in body[:4096] and not body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DocumentUnreadableError("it is not text")
    if name in ("", "application/octet-stream", "text/plain") and start.startswith((b"<!doctype html", b"<html")):
        return "html"
    return "text"


def _may_be_text(name: str) -> bool:
    family, _, kind = name.partition("/")
    plain = "xml", "yaml", "javascript", "toml", "sql", "markdown", "ndjson", "x-sh", "octet-stream", "rtf", "jsonl"
    return family == "text" or (
        family == "application" and any(word in kind for word in plain) and "officedo" not in kind
    )


def decode(body: bytes, content_type: str) -> str:
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    header = re.search(r"charset\s*=\s*[\"']?\s*([\w:.-]{2,40})", content_type, re.IGNORECASE)
    inside = [pattern.search(body[:4096]) for pattern in (_META, _DECLARATION)]
    named = [*([header[1]] if header else []), *(found[1].decode("ascii") for found in inside if found)]
    for name in named:
        if charset := _charset(name):
            return body.decode(charset, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        # A few bad bytes mean damaged UTF-8; many mean another character set.
        decoded = body.decode("utf-8", "replace")
        mostly = decoded.count("\ufffd") * 10 < sum(character > "\x7f" for character in decoded)
        return decoded if mostly else body.decode("cp1252", "replace")


def _charset(name: str) -> str:
    name = name.lower()
    if not _CHARSET.fullmatch(name):
        return ""
    name = {"shift-jis": "shift_jis", "macintosh": "mac_roman", "x-mac-cyrillic": "mac_cyrillic"}.get(name, name)
    if name in ("us-ascii", "ascii", "iso-8859-1", "iso8859-1", "latin1", "latin-1"):
        return "cp1252"  # as browsers do
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=1)
    except (ValueError, RecursionError):
        return text  # not one JSON document: show it unchanged


def _read_pdf(body: bytes) -> tuple[str, str]:
    try:
        import pypdf  # noqa: PLC0415 - optional, and slow to import
    except ImportError as error:
        raise DocumentUnreadableError(
            "it is a PDF, and this installation cannot read PDFs: the extra 'web' (package pypdf) is not installed"
        ) from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every irregularity of a file
    try:
        title, pages = _pdf_pages(pypdf.PdfReader(io.BytesIO(body)))
    except DocumentUnreadableError:
        raise
    except Exception as error:  # a damaged file can raise anything in the library
        raise DocumentUnreadableError(f"the PDF is damaged ({type(error).__name__})") from error
    if not any(pages):
        raise DocumentUnreadableError("the PDF contains no text, only images")
    return title, "\n\n".join(f"[page {number}]\n{text}" for number, text in enumerate(pages, 1))


def _pdf_pages(reader: Any) -> tuple[str, list[str]]:
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentUnreadableError("the PDF is protected with a password")
    pages = [page.extract_text().strip() for page in reader.pages[:MAX_PDF_PAGES]]
    return str((reader.metadata and reader.metadata.title) or ""), pages
