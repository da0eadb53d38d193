"""The check of the built site finds each kind of fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.site_check import main, problems

GOOD = '<a href="other.html#there">a</a><a href="https://example.com/">b</a><img src="a.svg"><h1 id="top"></h1>'


def site(folder: Path, body: str, **files: str) -> Path:
    (folder / "a.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (folder / "other.html").write_text('<h1 id="there">x</h1>')
    (folder / "index.html").write_text(body)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_a_sound_site_has_no_problem(tmp_path: Path) -> None:
    assert problems(site(tmp_path, GOOD, app_js='x("http://www.w3.org/2000/svg")')) == []
    assert main([str(tmp_path)]) == 0


@pytest.mark.parametrize(
    "body",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<script src="//cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<link rel="preconnect" href="https://fonts.example">',
        '<img src="https://example.com/badge.svg">',
        '<p style="background: url(https://example.com/x.png)">',
    ],
)
def test_a_request_to_another_host_is_found(tmp_path: Path, body: str) -> None:
    [found] = problems(site(tmp_path, GOOD + body))
    assert (found.page, found.text.partition(" ")[0]) == ("index.html", "loads")


@pytest.mark.parametrize("name", ["x_css", "x_js"])
def test_a_request_from_a_file_is_found(tmp_path: Path, name: str) -> None:
    text = {"x_css": '@import "https://fonts.example/a";', "x_js": 'fetch("https://example.com/a")'}[name]
    assert [each.page for each in problems(site(tmp_path, GOOD, **{name: text}))] == [name.replace("_", ".")]


@pytest.mark.parametrize(
    "body", ['<a href="no.html">', '<a href="other.html#no">', '<a href="#no">', '<img src="no.svg">']
)
def test_a_broken_link_is_found(tmp_path: Path, body: str) -> None:
    assert len(problems(site(tmp_path, GOOD + body))) == 1


def test_an_empty_site_fails(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 1
