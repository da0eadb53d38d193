from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.tools.web.page import readable

URL = "https://site.example/docs/page.html"


def text_of(html: str) -> str:
    return readable(html, URL)[1]


def test_the_title_is_found_and_is_not_part_of_the_text() -> None:
    html = "<html><head><title>One &amp;\n two</title></head><body><p>Body</p><svg><title>x</title></svg>"
    assert readable(html, URL) == ("One & two", "Body")


def test_headings_paragraphs_and_line_breaks_stay() -> None:
    assert text_of("<h1>A</h1><p>one\n two<br>three<h2>B</h2>tail") == "# A\n\none\ntwo  \nthree\n\n## B\n\ntail"


def test_scripts_styles_and_furniture_go() -> None:
    html = """<script>var x = "<p>no</p>";</script><style>p{}</style><nav>menu</nav><aside>ads</aside>
    <div role=navigation>more menu</div><p>kept</p><noscript>turn it on</noscript><footer>imprint</footer>"""
    assert text_of(html) == "kept"


def test_what_a_reader_cannot_see_is_not_shown() -> None:
    html = """<p>seen<span style="display: none">1</span><span hidden>2</span><span aria-hidden=true>3</span>
    <!-- 4 --></p><template>5</template>"""
    assert text_of(html) == "seen"


DROPPED_ELEMENTS = [
    *(
        "script",
        "style",
        "noscript",
        "template",
        "svg",
        "math",
        "iframe",
        "object",
        "canvas",
        "audio",
        "video",
        "nav",
    ),
    *("aside", "footer", "button", "select", "textarea", "datalist", "dialog", "menu"),
]
DROPPED_ROLES = ["navigation", "banner", "contentinfo", "search", "complementary", "menu", "menubar", "dialog"]


@pytest.mark.parametrize(
    "html",
    [
        *(f"<{name}>unseen</{name}>" for name in DROPPED_ELEMENTS),
        *(f"<div role={role}>unseen</div>" for role in DROPPED_ROLES),
        "<div style='VISIBILITY : Hidden'>unseen</div>",
        "<div style='display:none!important'>unseen</div>",
        "<!-- <main>" + "unseen " * 60 + "</main> -->",
        "<div hidden><main>" + "unseen " * 60 + "</main></div>",
    ],
)
def test_every_kind_of_dropped_element_goes(html: str) -> None:
    assert text_of(f"<p>seen</p>{html}<p>end</p>") == "seen\n\nend"


def test_only_the_main_part_is_shown_when_there_is_one_worth_it() -> None:
    story = "word " * 60
    assert text_of(f"<div>cookies?</div><main><p>{story}</p></main><div>related</div>") == story.strip()
    assert text_of("<div>all of it is here</div><main></main>") == "all of it is here"


def test_lists_nest_and_count() -> None:
    html = "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul><ol start=3><li>d<li>e</ol>"
    assert text_of(html) == "- a\n  - b\n- c\n\n3. d\n4. e"


def test_links_are_shown_with_where_they_lead() -> None:
    html = '<a href="../up">up</a>, <a href="//o.example/x">other</a>'
    assert text_of(html) == "[up](https://site.example/up), [other](https://o.example/x)"


@pytest.mark.parametrize("kind", ["headerlink", "anchor"])
def test_link_from_a_heading_to_itself_goes(kind: str) -> None:
    assert text_of(f'<h2>Part<a class="{kind}" href="#part">¶</a></h2>') == "## Part"


def test_link_around_several_blocks_keeps_their_text() -> None:
    assert text_of("<p>x</p><a href=/1><h3>T</h3><p>more</p></a>") == "x\n\n[T more](https://site.example/1)"


def test_a_page_that_hides_itself_until_its_scripts_run_is_read() -> None:
    assert text_of("<html hidden><body style='display:none'><p>text</p>") == "text"


def test_a_base_element_moves_relative_links() -> None:
    assert text_of('<base href="https://b.example/dir/"><a href=x>y</a>') == "[y](https://b.example/dir/x)"


def test_tables_keep_their_rows_and_columns() -> None:
    html = "<table><tr><th>name<th>value</tr><tr><td>a|b<td><p>1</p><p>2</p></tr></table>"
    assert text_of(html) == "| name | value |\n| --- | --- |\n| a\\|b | 1 2 |"


def test_table_in_a_table_keeps_its_text() -> None:
    html = "<table><tr><td>logo</td><td><table><tr><td>x</td><td>y</td></tr></table></td><td>side</td></tr></table>"
    assert text_of(html).splitlines()[0] == "| logo | x y | side |"


def test_code_keeps_its_lines_and_language() -> None:
    html = '<pre><code class="hl language-py">def f():\n    return "&lt;"\n</code></pre><p>use <code>f()</code></p>'
    assert text_of(html) == '```py\ndef f():\n    return "<"\n```\n\nuse `f()`'


def test_code_without_anything_in_it_leaves_no_signs() -> None:
    assert text_of("a<code></code>b ``c``") == "ab ``c``"


def test_code_with_fences_in_it_gets_a_longer_one() -> None:
    assert text_of("<pre>```\nx\n```</pre>") == "````\n```\nx\n```\n````"


def test_quotes_definitions_rules_and_pictures_are_marked() -> None:
    html = "<blockquote>a<br>b</blockquote><hr><dl><dt>t<dd>d</dl><img alt='a cat' src=/x>"
    assert text_of(html) == "> a  \n> b\n---\n\nt\n\nd\n\n![a cat](https://site.example/x)"


def test_picture_in_the_page_itself_is_shown_by_its_description() -> None:
    assert text_of("<img alt='a cat' src='data:image/png;base64,AAAA'>") == "a cat"


@pytest.mark.parametrize("html", ["<div>" * 900 + "x", "<p>" * 5000 + "x", "<li>" * 5000 + "x", "<b><i></b>x</i>"])
def test_bad_nesting_costs_no_text(html: str) -> None:
    assert "x" in text_of(html)


@pytest.mark.parametrize("tag", ["<div>", "<blockquote>", "<table><tr><td>", "<ul><li>"])
def test_elements_nested_too_deep_are_dropped_and_the_rest_stays(tag: str) -> None:
    text = text_of("<p>before</p>" + tag * 5000 + "x")
    assert text.startswith("before")
    assert "x" not in text


TAGS = ["table", "tr", "td", "pre", "a", "li", "ul", "main", "blockquote", "nav", "h1", "code", "p", "title", "head"]
PIECES = [*(f"<{tag}>" for tag in TAGS), *(f"</{tag}>" for tag in TAGS), "<br>", "word ", "<a href=x>", "\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_page_is_refused(html: str) -> None:
    text_of(html)
