"""Markdown as Slack shows it, and texts cut to what it takes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.adapters.slack.outbound.blocks import SECTION
from hermes.adapters.slack.outbound.mrkdwn import to_mrkdwn
from hermes.adapters.slack.outbound.parts import parts, shown


@pytest.mark.parametrize(
    ("markdown", "mrkdwn"),
    [
        ("**bold** *it* ~~gone~~ `a<b`", "*bold* _it_ ~gone~ `a&lt;b`"),
        ("# A **big** title", "*A big title*"),
        ("- one\n- two\n  1. three", "• one\n• two\n  1. three"),
        ("> said\n> twice", "> said\n> twice"),
        ("```python\nx = 1 < 2\n```", "```\nx = 1 &lt; 2\n```"),
        ("[label](https://a.example/?b=1&c=2)", "<https://a.example/?b=1&amp;c=2|label>"),
        ("<https://a.example>", "<https://a.example>"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("![alt](https://a.example/i.png)", "<https://a.example/i.png|alt>"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```"),
        ("a\n\n---\n\nb", "a\n\n———\n\nb"),
        ("<!channel> <@U1> <b>", "&lt;!channel&gt; &lt;@U1&gt; &lt;b&gt;"),
        ("un**believ**able", "un\u200b*believ*\u200bable"),
        ("a\r\rb\r\n\r\n```\rc\r```", "a\n\nb\n\n```\nc\n```"),
        ("**two\nlines**", "*two*\n*lines*"),
        ("2 * 3 * 4 and snake_case_name", "2 * 3 * 4 and snake_case_name"),
    ],
)
def test_markdown_becomes_mrkdwn(markdown: str, mrkdwn: str) -> None:
    assert to_mrkdwn(markdown) == mrkdwn


def test_code_with_a_fence_in_it_stays_in_its_block() -> None:
    assert to_mrkdwn("````\n```\ninner\n```\n````").count("```") == 2


TEXTS = st.lists(
    st.sampled_from(
        ["word ", "&", "<", "\n", "\n\n", "```\n", "**b** ", "- item\n", "| a |\n", "> q\n", "[l](https://x.y) "]
    )
    | st.text(max_size=5),
    max_size=60,
).map(lambda pieces: "".join(piece * 40 for piece in pieces))


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_every_part_of_any_text_fits_into_a_block(text: str) -> None:
    made = parts(text)
    assert made == parts(text)
    assert made
    for part in made:
        assert part.strip()
        assert 1 <= len(shown(part)) <= SECTION


def test_a_short_text_is_one_part_and_an_empty_one_is_not_blank() -> None:
    assert parts("hello") == ("hello",)
    assert parts("  ")[0].strip()
