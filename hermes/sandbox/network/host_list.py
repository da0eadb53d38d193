"""List of hosts that a sandbox may reach: the default table, and the test whether a host is on a list. Pure.

An entry is the exact name of a host, or `*.suffix` for every host below that suffix (not the suffix itself).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hermes.system.public_address import is_host_name

DEFAULT = "default"  # the entry that stands for DEFAULT_HOSTS
WILDCARD = "*."

# Package registries and git hosts by their public names. Each of them also accepts uploads: an allowed host is a way
# out for data.
DEFAULT_HOSTS = frozenset(
    {
        # Python
        "pypi.org",
        "files.pythonhosted.org",
        # JavaScript
        "registry.npmjs.org",
        "registry.yarnpkg.com",
        # Rust
        "crates.io",
        "index.crates.io",
        "static.crates.io",
        "static.rust-lang.org",
        # Go
        "proxy.golang.org",
        "sum.golang.org",
        # Ruby, PHP, Elixir, Dart
        "rubygems.org",
        "index.rubygems.org",
        "packagist.org",
        "repo.packagist.org",
        "hex.pm",
        "repo.hex.pm",
        "pub.dev",
        # Java and .NET
        "repo.maven.apache.org",
        "repo1.maven.org",
        "plugins.gradle.org",
        "services.gradle.org",
        "api.nuget.org",
        # Haskell, Perl, R
        "hackage.haskell.org",
        "cpan.metacpan.org",
        "fastapi.metacpan.org",
        "cloud.r-project.org",
        # Conda
        "conda.anaconda.org",
        "repo.anaconda.com",
        # Linux distributions
        "deb.debian.org",
        "security.debian.org",
        "archive.ubuntu.com",
        "security.ubuntu.com",
        "ports.ubuntu.com",
        "dl-cdn.alpinelinux.org",
        # Git hosts, and where they keep archives and releases
        "github.com",
        "api.github.com",
        "codeload.github.com",
        "raw.githubusercontent.com",
        "objects.githubusercontent.com",
        "release-assets.githubusercontent.com",
        "media.githubusercontent.com",
        "gitlab.com",
        "bitbucket.org",
        "codeberg.org",
    }
)


def normal_host(text: str) -> str:
    """Return a host in the form in which hosts are compared: lower case, without the root's dot."""
    return text.lower().removesuffix(".")


def is_listed(host: str, entries: Collection[str]) -> bool:
    """Return whether a host in normal form is on a list of entries in normal form."""
    labels = host.split(".")
    parents = (".".join(labels[at:]) for at in range(1, len(labels)))
    return host in entries or any(WILDCARD + parent in entries for parent in parents)


def allowed_hosts(entries: Iterable[str]) -> frozenset[str]:
    """Return the entries of a setting in normal form, `default` replaced by the default table.

    Raises ValueError for an entry that is neither a host's name nor `*.suffix`.
    """
    found: set[str] = set()
    for entry in entries:
        found |= DEFAULT_HOSTS if entry == DEFAULT else {_entry(entry)}
    return frozenset(found)


def _entry(text: str) -> str:
    host = normal_host(text.strip())
    suffix = host.removeprefix(WILDCARD)
    if not is_host_name(suffix):
        raise ValueError(f"{text!r} is not a host: give a name (example.org) or a suffix (*.example.org)")
    if suffix != host and "." not in suffix:
        raise ValueError(f"{text!r} covers a whole top-level domain")
    return host
