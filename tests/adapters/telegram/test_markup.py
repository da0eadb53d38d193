"""Markdown as Telegram shows it: its own tags only, nothing lost, and as long as it was at most."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.telegram.markup import to_html
from tests.support.telegram_state import visible_text

PIECES = [
    "**", "*", "_", "`", "```", "~~", "[", "](http://x.y)", "![", "](", ")", "<b>", "</b>", "<", "&amp;", "&", ">",
    "> ", "- ", "1. ", "9) ", "# ", "---", "|", "\n", "\n\n", "    ", "word", "😀", "\\", '"', "'", "a b", "[x]: http://y.z",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("plain & <simple>", "plain &amp; &lt;simple&gt;"),
        ("**b** *i* ~~s~~ `c<`", "<b>b</b> <i>i</i> <s>s</s> <code>c&lt;</code>"),
        ("a\nb  \nc", "a\nb\nc"),
        ("one\n\ntwo\n\n\nthree", "one\n\ntwo\n\nthree"),
        ("# Title\ntext", "<b>Title</b>\ntext"),
        ("[site](https://x.y/?a=1&b=2)", '<a href="https://x.y/?a=1&amp;b=2">site</a>'),
        ("![a cat](https://x.y/c.png)", '<a href="https://x.y/c.png">a cat</a>'),
        ("[file](docs/a.md)", "file (docs/a.md)"),
        ("- a\n- b\n  - c\n\ntext", "• a\n• b\n  • c\n\ntext"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("1) a", "1) a"),
        ("> said\n> so\n\nyes", "<blockquote>said\nso</blockquote>\n\nyes"),
        ("> a\n> > b", "<blockquote>a\nb</blockquote>"),
        ("```py\na < b\n\nc\n```", '<pre><code class="language-py">a &lt; b\n\nc</code></pre>'),
        ("```\nnot closed", "<pre>not closed</pre>"),
        ("|a|b|\n|-|-|\n|1|2|", "<pre>|a|b|\n|-|-|\n|1|2|</pre>"),
        ("a\n***\nb", "a\n———\nb"),
        ("a\r\rb\r\n\r\n```\rc\r```", "a\n\nb\n\n<pre>c</pre>"),
        ("snake_case_name 2*3*4", "snake_case_name 2<i>3</i>4"),
        ("\\*not bold\\*", "*not bold*"),
        ("[x]: http://y.z", "[x]: http://y.z"),
        ("", ""),
        ("```\n```", ""),
    ],
)
def test_markdown_becomes_what_telegram_understands(text: str, markup: str) -> None:
    assert to_html(text) == markup


@given(TEXTS)
def test_whatever_is_written_telegram_takes_it(text: str) -> None:
    shown = visible_text(to_html(text))
    if shown and not re.search("(```|~~~).*(word|😀)", text):  # a block's language is no text of its own
        assert all(shown.count(word) == text.count(word) for word in ("word", "😀"))


def test_what_would_be_too_long_goes_without_markup() -> None:
    assert to_html("[a](b)" * 20)
    assert to_html("x" * 4097) == ""
