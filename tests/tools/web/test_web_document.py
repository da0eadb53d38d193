from __future__ import annotations

import gzip
import sys
import zlib

import pytest

from hermes.tools.web.web_document import DocumentUnreadableError, decode, inflate, kind_of, read_document
from tests.tools.web.pdf import a_pdf

MAX = 100_000


def text_of(body: bytes, content_type: str = "", encoding: str = "") -> str:
    return read_document(
        body, url="https://x.example/", content_type=content_type, encoding=encoding, max_bytes=MAX
    ).text


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("text/html; charset=utf-8", b"x", "html"),
        ("application/xhtml+xml", b"x", "html"),
        ("", b"\n<!DOCTYPE HTML><p>", "html"),
        ("text/plain", b"<html>", "html"),
        ("application/json", b"{}", "json"),
        ("application/ld+json", b"{}", "json"),
        ("application/pdf", b"%PDF-1.4", "pdf"),
        ("application/octet-stream", b"%PDF-1.4", "pdf"),
        ("text/markdown", b"# x", "text"),
        ("application/x-yaml", b"a: 1", "text"),
        ("application/rss+xml", b"<rss>", "text"),
        ("", b"plain", "text"),
    ],
)
def test_a_document_is_what_it_says_or_looks_like(content_type: str, body: bytes, kind: str) -> None:
    assert kind_of(content_type, body) == kind


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("image/png", b"\x89PNG"),
        ("application/zip", b"PK"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", b"PK"),
        ("application/octet-stream", b"\x7fELF\0\0"),
        ("text/plain", b"a\0b"),
    ],
)
def test_what_has_no_text_is_refused(content_type: str, body: bytes) -> None:
    with pytest.raises(DocumentUnreadableError):
        kind_of(content_type, body)


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("é€".encode(), "text/plain", "é€"),
        ("é".encode("latin-1"), "text/plain", "é"),
        (b"\x80 \x93x\x94", "text/plain; charset=ISO-8859-1", "€ “x”"),
        ("привет".encode("koi8-r"), 'text/plain; charset="KOI8-R"', "привет"),
        ("日本".encode("shift_jis"), "text/plain; charset=Shift_JIS", "日本"),
        (b'<meta charset="windows-1251">' + "да".encode("cp1251"), "text/html", '<meta charset="windows-1251">да'),
        ("\ufeffx".encode("utf-16-le"), "text/plain; charset=latin-1", "x"),
        (b"x", "text/plain; charset=unicode_escape", "x"),
        (b"x", "text/plain; charset=no-such", "x"),
        ("ééééééééééééééééé".encode() + b"\xff", "text/plain", "ééééééééééééééééé\ufffd"),
    ],
)
def test_the_character_set_is_found(body: bytes, content_type: str, text: str) -> None:
    assert decode(body, content_type) == text


def test_packed_bodies_are_unpacked() -> None:
    raw = zlib.compressobj(wbits=-15)
    assert inflate(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", MAX) == b"ab"
    assert inflate(zlib.compress(b"x"), "deflate", MAX) == b"x"
    assert inflate(raw.compress(b"x") + raw.flush(), "deflate", MAX) == b"x"
    assert inflate(gzip.compress(zlib.compress(b"x")), "deflate, gzip", MAX) == b"x"
    assert inflate(b"x", "identity", MAX) == b"x"
    assert inflate(gzip.compress(b"abc") + b"\0\0", "gzip", MAX) == b"abc"


def test_a_small_body_that_unpacks_to_a_huge_one_is_refused() -> None:
    bomb = gzip.compress(bytes(50 * MAX))
    for body, encoding in [(bomb, "gzip"), (gzip.compress(bomb), "gzip, gzip")]:
        with pytest.raises(DocumentUnreadableError, match="larger"):
            inflate(body, encoding, MAX)


def test_unrequested_or_damaged_compression_is_an_error() -> None:
    with pytest.raises(DocumentUnreadableError, match="br"):
        inflate(b"x", "br", MAX)
    with pytest.raises(DocumentUnreadableError, match="damaged"):
        inflate(b"not gzip", "gzip", MAX)


def test_json_is_laid_out_and_bad_json_left_as_it_is() -> None:
    assert text_of(b'{"a":["\xc3\xa9"]}', "application/json") == '{\n "a": [\n  "é"\n ]\n}'
    assert text_of(b'{"a":1}\n{"a":2}', "application/json") == '{"a":1}\n{"a":2}'
    assert text_of(b"[" * 50_000, "application/json") == "[" * 50_000


def test_signs_that_hide_or_reorder_text_are_taken_out() -> None:
    assert text_of("a\u202eb\u200bc\U000e0041d\x1b[31m\r\ne".encode(), "text/plain") == "abcd[31m\ne"


def test_a_pdf_is_read_page_by_page() -> None:
    pytest.importorskip("pypdf")
    document = read_document(
        a_pdf("Hello paper", "Second"), url="", content_type="application/pdf", encoding="", max_bytes=MAX
    )
    assert document.text == "[page 1]\nHello paper\n\n[page 2]\nSecond"
    assert document.title == "On paper"


def test_damaged_or_empty_pdf_is_an_error() -> None:
    pytest.importorskip("pypdf")
    with pytest.raises(DocumentUnreadableError, match="damaged"):
        text_of(b"%PDF-1.4 nothing of the sort")
    with pytest.raises(DocumentUnreadableError, match="no text"):
        text_of(a_pdf(""))


def test_without_the_extra_a_pdf_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(DocumentUnreadableError, match="'web'"):
        text_of(a_pdf("x"))
