from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest

from hermes.system import own_ports
from hermes.system.public_address import public_only, public_or_private
from hermes.tools.web.address_guard import AddressGuard, AddressRefusedError

PUBLIC = ["93.184.216.34", "1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001:82a::200e"]
PRIVATE = ["10.0.0.1", "172.16.0.1", "192.168.1.1", "127.0.0.1", "127.8.8.8", "100.64.0.1", "::1", "fc00::1"]
NEVER = [
    "0.0.0.0",
    "0.1.2.3",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:93.184.216.34",
    "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::5db8:d822",
    "64:ff9b:1::a9fe:a9fe",
    "2002:7f00:1::",
    "2002:5db8:d822::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2606:4700::5efe:7f00:1",
    "2606:4700::200:5efe:a9fe:a9fe",
]
METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "fd00:ec2::254",
    "fd20:ce::254",
    "fe80::1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
]
ALSO_NOT_PUBLIC = [
    "192.0.0.9",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.88.99.1",
    "2001:db8::1",
    "2001:10::1",
    "3fff::1",
    "fec0::1",
    "100::1",
    "4000::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert public_only(ip_address(address)) == ""
    assert public_or_private(ip_address(address)) == ""


@pytest.mark.parametrize("address", [*PRIVATE, *NEVER, *METADATA, *ALSO_NOT_PUBLIC])
def test_everything_else_is_refused(address: str) -> None:
    assert public_only(ip_address(address))


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_can_be_allowed(address: str) -> None:
    assert public_or_private(ip_address(address)) == ""


@pytest.mark.parametrize("address", [*NEVER, *METADATA])
def test_metadata_services_and_hidden_addresses_are_refused_even_then(address: str) -> None:
    assert public_or_private(ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "javascript:alert(1)",
        "example.com",
        "//example.com/",
        "http://",
        "http:///path",
        "",
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://:pass@example.com/",
        "http://exam ple.com/",
        "http://example.com\\@127.0.0.1/",
        "http://example.com:99999/",
        "http://exa\tmple.com/",
        "http://example.com/\r\nHost: other",
        "http://a..b/",
        "http://a%2eb/",
        "http://[::1/",
        "http://-a.example/",
        "http://example.com/" + "a" * 5000,
    ],
)
def test_a_url_that_is_not_a_plain_web_address_is_refused(url: str) -> None:
    with pytest.raises(AddressRefusedError):
        AddressGuard(refusal=lambda _: "").url(url)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7F.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.01",
        "127.0.0.1.0x1",
        "999.1.1.1",
        "1.2.3.4.5",
        "0",
        "0x",
        "\uff11\uff12\uff17.0.0.1",  # full-width digits
        "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",  # circled ones
        "127\u30020\u30020\u30021",  # ideographic full stops
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[fe80::1%25eth0]",
        "[fd00:ec2::254]",
        "169.254.169.254",
        "2852039166",
        "0xA9FEA9FE",
    ],
)
def test_an_address_in_a_url_is_recognised_in_every_disguise(host: str) -> None:
    with pytest.raises(AddressRefusedError):
        AddressGuard().url(f"http://{host}/")


def test_a_public_address_or_a_name_goes_through_as_it_is() -> None:
    guard = AddressGuard()
    assert str(guard.url("https://Example.com:8443/a?b=c#part")) == "https://example.com:8443/a?b=c"
    assert str(guard.url(" http://93.184.216.34/x ")) == "http://93.184.216.34/x"
    assert str(guard.url("http://[2606:4700:4700::1111]/")) == "http://[2606:4700:4700::1111]/"
    assert str(guard.url("http://example.com./")) == "http://example.com/"
    assert guard.url("http://b\u00fccher.example/").raw_host == "xn--bcher-kva.example"


async def test_one_bad_address_among_good_ones_refuses_the_host() -> None:
    async def resolve(_: str) -> Sequence[str]:
        return ["93.184.216.34", "2606:4700:4700::1111", "127.0.0.1"]

    with pytest.raises(AddressRefusedError, match=r"two-faced\.example \(127\.0\.0\.1\)"):
        await AddressGuard(resolve=resolve).addresses("two-faced.example")


async def test_localhost_by_name_is_refused_by_what_it_resolves_to() -> None:
    with pytest.raises(AddressRefusedError):
        await AddressGuard().addresses("localhost")


def test_no_socket_is_made_for_an_address_that_is_not_allowed() -> None:
    with pytest.raises(AddressRefusedError):
        AddressGuard().socket((2, 1, 6, "", ("127.0.0.1", 80)))
    AddressGuard().socket((2, 1, 6, "", ("93.184.216.34", 80))).close()


def test_the_lists_hold_addresses_of_both_kinds() -> None:
    kinds = {type(ip_address(text)) for text in [*PUBLIC, *PRIVATE]}
    assert kinds == {IPv4Address, IPv6Address}


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9"])
def test_no_socket_is_made_for_a_port_of_the_daemon(address: str) -> None:
    guard = AddressGuard(refusal=public_or_private)
    own_ports.opened(48_642)
    try:
        with pytest.raises(AddressRefusedError, match="Hermes itself"):
            guard.socket((2, 1, 6, "", (address, 48_642)))
        guard.socket((2, 1, 6, "", (address, 48_643))).close()
        guard.socket((2, 1, 6, "", ("93.184.216.34", 48_642))).close()
    finally:
        own_ports.closed(48_642)
    guard.socket((2, 1, 6, "", (address, 48_642))).close()
