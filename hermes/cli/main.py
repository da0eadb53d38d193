"""Entry point of the command line: the table of commands, and the printing of errors.

Each expected error is one line on stderr and an exit code of its own. A command imports what it needs when it runs.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.cli.chat import chat
from hermes.cli.commands import (
    answer,
    backup,
    config,
    control,
    daemon,
    dead_letters,
    exchange,
    grants,
    inspect,
    keys,
    logs,
    model,
    pairing,
    processes,
    ps,
    reload,
    send,
    service,
    status,
    storage,
    tail,
    tools,
    trace,
    trust,
)
from hermes.cli.doctor import doctor
from hermes.cli.output import print_text
from hermes.cli.parser import COMPLETION_PREAMBLE, ArgumentParser, Commands, Help
from hermes.cli.setup import setup, slack_manifest
from hermes.cli.suggestion import MEANINGS, translated
from hermes.domain.errors import HermesError, UnknownSessionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.cli.parser import Run

_INTERRUPTED = 130  # exit code of a shell for a process that SIGINT ended; below, for SIGPIPE
_BROKEN_PIPE = 141
_COMPLETE = "__complete"  # called by the completion scripts only
_MAX_COMPLETIONS = 100  # sessions

# Modules that add commands, in the order of `hermes --help`.
_GROUPS = (
    daemon, status, doctor, chat, ps, inspect, tail, trace, answer, grants, keys, processes, control, reload,
    logs, dead_letters, send, pairing, setup, exchange, backup, service, storage, slack_manifest, config, tools,
    model, trust,
)  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal cannot show must not raise
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")
    argv = sys.argv[1:] if argv is None else argv
    try:
        if argv[:1] == [_COMPLETE]:
            return _complete(argv[1:])
        argv = translated(argv)
        parser = _build_parser()
        if argv[:1] and argv[0].startswith("-") and argv[0] in MEANINGS:  # argparse would report the word after it
            parser.error(f"unrecognized arguments: {argv[0]}")
        args, unknown = parser.parse_known_args(argv)
        if unknown:  # reported by the parser of the command, with its usage
            args.usage_error(f"unrecognized arguments: {' '.join(unknown)}")
        code: int = args.run(args, os.environ)
        sys.stdout.flush()
    except SystemExit as request:  # raised by argparse
        return request.code if isinstance(request.code, int) else 0
    except HermesError as error:
        print_text(f"hermes: {error}{_remedy(error)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        # CPython marks an interrupt inside `exec` (which dataclasses use) as unhandled until the next `exec`. Without
        # this call `python -m` would end by the signal.
        exec("")  # noqa: S102
        return _INTERRUPTED
    except BrokenPipeError:
        _discard_stdout()
        return _BROKEN_PIPE
    except OSError as error:
        _discard_stdout()
        print(f"hermes: {error}", file=sys.stderr)
        return 1
    return code


def _remedy(error: HermesError) -> str:
    """Return advice that only makes sense on the command line, to append to an error."""
    unknown = isinstance(error, UnknownSessionError) or getattr(error, "code", "") == "session_not_found"
    return "; `hermes sessions` lists them" if unknown else ""


def _discard_stdout() -> None:
    """Discard unwritten output: the interpreter would flush it at exit and fail once more."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _build_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="hermes",
        description="Hermes keeps long-lived conversations with AI agents alive.",
        epilog=(
            "examples:\n"
            "  hermes daemon                       start the daemon in the foreground\n"
            "  hermes chat                         start a conversation\n"
            "  hermes sessions                     list stored sessions\n"
            "  hermes why SESSION                  explain the state of a session\n"
            "  hermes backup /backups/now.tar.gz   back up everything\n\n"
            "Data is stored under $HERMES_HOME if it is set, else in the data directory of the platform.\n"
            "SESSION is a session id, the first characters of the id or of its last part, or - for the last active\n"
            "session. Errors are plain text on stderr with a non-zero exit code. stdout stays empty then, also with\n"
            "--json, except for `hermes config check` and `hermes status`: they report problems on stdout."
        ),
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"hermes {__version__}")
    parser.set_defaults(run=_print_help(parser), usage_error=parser.error, json=False)
    commands = Commands(parser, required=False)
    for group in _GROUPS:
        group.add_commands(commands)
    completion = commands.add(
        "completion",
        lambda args, _: _print_completion(parser, args.shell),
        "Print a completion script for your shell.",
        examples='  eval "$(hermes completion bash)"\n  hermes completion fish | source',
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    return parser


def _print_help(parser: ArgumentParser) -> Run:
    def run(_args: argparse.Namespace, _environ: Mapping[str, str]) -> int:
        parser.print_help()
        return 0

    return run


def _print_completion(parser: ArgumentParser, shell: str) -> int:
    import shtab

    print(shtab.complete(parser, shell, preamble=COMPLETION_PREAMBLE.get(shell, "")))
    return 0


def _complete(words: list[str]) -> int:
    """Print the session ids for shell completion. Errors are ignored: the person is still typing."""
    from hermes.cli.session_lookup import open_records, recent

    if words == ["sessions"]:
        with suppress(HermesError), open_records(os.environ, quietly=True) as records:
            for session in recent(records, _MAX_COMPLETIONS):
                print(session["id"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
