"""Table of web search providers, and their requests and answers as data. Pure.

A new provider is an entry here. Addresses and fields are those of the providers' documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hermes.domain.values import dataclass

NO_PROVIDER: Final = "none"
MAX_TITLE_CHARS: Final = 200
MAX_SNIPPET_CHARS: Final = 600
MAX_URL_CHARS: Final = 2_000
_MAX_DATE_CHARS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchProvider:
    """How a provider is asked, and where its answer has the results."""

    name: str
    title: str
    base_url: str = ""  # empty: the configuration must have one
    path: str = ""
    key_variable: str = ""  # environment variable of the key; empty: no key is expected
    key_header: str = "Authorization"  # this one gets `Bearer KEY`, another one the key alone
    post: bool = False  # a JSON document instead of query parameters
    query: str = "q"
    count: str = ""  # field of the number of results; empty: the provider has none
    max_count: int = 20
    fixed: tuple[tuple[str, Any], ...] = ()
    results: tuple[str, ...] = ("results",)
    snippet: tuple[str, ...] = ("snippet",)  # the first field that has text
    date: tuple[str, ...] = ("date",)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchRequest:
    url: str
    post: bool
    fields: Mapping[str, Any]  # query parameters, or the JSON document of a POST


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearchResult:
    title: str
    url: str
    snippet: str
    date: str  # as the provider writes it; empty if it gives none


_ENTRIES = (
    WebSearchProvider(
        name="searxng",
        title="SearXNG",
        path="/search",
        fixed=(("format", "json"),),
        snippet=("content",),
        date=("publishedDate",),
    ),
    WebSearchProvider(
        name="brave",
        title="Brave Search",
        base_url="https://api.search.brave.com/res/v1",
        path="/web/search",
        key_variable="BRAVE_SEARCH_API_KEY",
        key_header="X-Subscription-Token",
        count="count",
        fixed=(("text_decorations", "false"),),
        results=("web", "results"),
        snippet=("description",),
        date=("page_age", "age"),
    ),
    WebSearchProvider(
        name="tavily",
        title="Tavily",
        base_url="https://api.tavily.com",
        path="/search",
        key_variable="TAVILY_API_KEY",
        post=True,
        query="query",
        count="max_results",
        snippet=("content",),
        date=("published_date",),
    ),
    WebSearchProvider(
        name="exa",
        title="Exa",
        base_url="https://api.exa.ai",
        path="/search",
        key_variable="EXA_API_KEY",
        key_header="x-api-key",
        post=True,
        query="query",
        count="numResults",
        fixed=(("contents", {"text": {"maxCharacters": MAX_SNIPPET_CHARS}}),),
        snippet=("text", "summary"),
        date=("publishedDate",),
    ),
    WebSearchProvider(name="custom", title="the search endpoint", count="count"),
)
WEB_SEARCH_PROVIDERS: Final[Mapping[str, WebSearchProvider]] = {each.name: each for each in _ENTRIES}


def search_request(provider: WebSearchProvider, base_url: str, query: str, count: int) -> WebSearchRequest:
    """Return the request of a search. `base_url` replaces the provider's own if it is not empty."""
    numbers = {provider.count: min(count, provider.max_count)} if provider.count else {}
    return WebSearchRequest(
        url=(base_url or provider.base_url).rstrip("/") + provider.path,
        post=provider.post,
        fields={provider.query: query, **numbers, **dict(provider.fixed)},
    )


def search_headers(provider: WebSearchProvider, key: str) -> dict[str, str]:
    """Return the headers with the key; none without a key."""
    if not key:
        return {}
    return {provider.key_header: f"Bearer {key}" if provider.key_header == "Authorization" else key}


def search_results(provider: WebSearchProvider, answer: object, count: int) -> tuple[WebSearchResult, ...] | None:
    """Return at most `count` results, each URL once. None if the answer is not one of this provider."""
    *sections, last = provider.results
    listed = answer
    for name in sections:
        if not isinstance(listed, dict):
            return None
        listed = listed.get(name, {last: []})  # a section without results is left out
    listed = listed.get(last) if isinstance(listed, dict) else None
    if not isinstance(listed, list):
        return None
    found: dict[str, WebSearchResult] = {}
    for each in listed:
        if isinstance(each, dict) and (result := _result(provider, each)):
            found.setdefault(result.url, result)
    return tuple(found.values())[:count]


def _result(provider: WebSearchProvider, entry: Mapping[str, object]) -> WebSearchResult | None:
    url = _text(entry, ("url",), MAX_URL_CHARS + 1)
    if not url.startswith(("http://", "https://")) or " " in url or len(url) > MAX_URL_CHARS:
        return None
    return WebSearchResult(
        title=_text(entry, ("title",), MAX_TITLE_CHARS),
        url=url,
        snippet=_text(entry, provider.snippet, MAX_SNIPPET_CHARS),
        date=_text(entry, provider.date, _MAX_DATE_CHARS),
    )


def _text(entry: Mapping[str, object], names: tuple[str, ...], most: int) -> str:
    """Return the first text of these fields on one line, shortened to `most` characters."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, str) and (text := " ".join(value[: most * 4].split())):
            return text if len(text) <= most else text[: most - 1] + "…"
    return ""
