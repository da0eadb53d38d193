"""Commands that print one answer: as JSON with --json, else as text for people.

Nothing slow is imported here: most of these commands import the client of the daemon when they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from hermes.cli.output import one_line, print_json, print_text
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Run
    from hermes.cli.session_lookup import Records

# A sentence, several lines, or a function that prints the text.
Text: TypeAlias = "str | Sequence[str] | Callable[[], None]"
Answer: TypeAlias = "tuple[Any, Text]"

_MAX_NAMED = 5  # ids in the error for an ambiguous prefix


def show(args: argparse.Namespace, answer: Any, text: Text) -> int:
    """Print an answer, and return the exit code of success."""
    if args.json:
        print_json(answer)
    elif callable(text):
        text()
    else:
        for line in [text] if isinstance(text, str) else text:
            print_text(one_line(line))
    return 0


def asks_daemon(ask: Callable[[argparse.Namespace, AdminClient], Answer]) -> Run:
    """Return a command that prints an answer of the daemon."""

    def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
        from hermes.cli.client import connect

        return show(args, *ask(args, connect(environ)))

    return run


def asks_session(ask: Callable[[argparse.Namespace, AdminClient, str], Answer]) -> Run:
    """Return a command that prints an answer of the daemon about the session that `args.session` means."""

    def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
        from hermes.cli.client import connect
        from hermes.cli.session_lookup import resolve_session

        client = connect(environ)
        return show(args, *ask(args, client, resolve_session(client, args.session)))

    return run


def reads_records(read: Callable[[argparse.Namespace, Records], Answer]) -> Run:
    """Return a command that reads the daemon's records, or the store if no daemon runs."""

    def run(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
        from hermes.cli.session_lookup import open_records

        with open_records(environ) as records:
            return show(args, *read(args, records))

    return run


def path_of(*parts: str) -> str:
    """Return a path of the admin API. Its parts may contain any character."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def only_match(found: Sequence[str], given: str) -> str | None:
    """Return the only id that `given` begins; None if there is none."""
    if len(found) > 1:
        more = ", …" if len(found) > _MAX_NAMED else ""
        names = ", ".join(found[:_MAX_NAMED])
        raise HermesError(f"{one_line(given)} is ambiguous: it could be {names}{more}; type more characters")
    return found[0] if found else None


def typed(prompt: str, *, secret: bool = False) -> str | None:
    """Ask a person for a line. None at the end of the input."""
    from getpass import getpass

    try:
        return (getpass if secret else input)(prompt).strip()
    except EOFError:
        print()
        return None


def confirms(question: str) -> bool:
    """Ask a person. No answer is a no."""
    return (typed(f"{question} [y/N] ") or "").lower() in ("y", "yes")
