"""List of hosts that a sandbox may reach."""

from __future__ import annotations

import pytest

from hermes.sandbox.network.host_list import DEFAULT_HOSTS, allowed_hosts, is_listed, normal_host
from hermes.system.public_address import is_host_name


@pytest.mark.parametrize(
    ("host", "listed"),
    [
        ("example.org", True),
        ("a.example.org", False),
        ("example.org.evil.test", False),
        ("xexample.org", False),
        ("a.wild.test", True),
        ("a.b.wild.test", True),
        ("wild.test", False),
        ("xwild.test", False),
        ("a.wild.test.evil.test", False),
        ("", False),
        ("org", False),
    ],
)
def test_host_is_listed_by_name_or_suffix(host: str, listed: bool) -> None:
    assert is_listed(host, frozenset({"example.org", "*.wild.test"})) is listed


def test_normal_form() -> None:
    assert normal_host("Example.ORG.") == "example.org"


def test_entries_of_a_setting() -> None:
    assert allowed_hosts(["Example.org", " *.Wild.test. "]) == {"example.org", "*.wild.test"}
    assert allowed_hosts(["default", "example.org"]) == {*DEFAULT_HOSTS, "example.org"}
    assert allowed_hosts([]) == frozenset()


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "*.",
        "*.com",
        "a.*.com",
        "*x.com",
        "https://example.org",
        "example.org/x",
        "example.org:443",
        ".",
        "127.0.0.1",
        "0x7f000001",
        "2130706433",
        "::1",
        "[::1]",
        "user@example.org",
        "bücher.example",
        "-a.example",
    ],
)
def test_other_entries_are_errors(entry: str) -> None:
    with pytest.raises(ValueError, match=r"is not a host|top-level"):
        allowed_hosts([entry])


@pytest.mark.parametrize("entry", ["", " ", "a b"])
def test_entries_with_spaces_are_errors(entry: str) -> None:
    with pytest.raises(ValueError, match="is not a host"):
        allowed_hosts([entry])


def test_default_hosts_are_exact_names_in_normal_form() -> None:
    assert all(is_host_name(host) and host == normal_host(host) and "." in host for host in DEFAULT_HOSTS)
