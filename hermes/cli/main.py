"""The command line's entrance: what can be typed, and how errors look.

Every error on purpose is a plain line and its own exit code. A command's imports happen when it runs.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.cli.chat import (
    answering,
    chat,
    exchange,
)
from hermes.cli.commands import (
    backup,
    config,
    control,
    daemon,
    dead_letters,
    grants,
    inspect,
    keys,
    pairing,
    processes,
    reload,
    send,
    service,
    slack,
    status,
    storage,
    tail,
    trace,
    trust,
)
from hermes.cli.output import say
from hermes.cli.parser import COMPLETION_PREAMBLE, ArgumentParser, Commands, Help
from hermes.cli.setup import setup
from hermes.cli.suggestion import MEANINGS
from hermes.domain.errors import HermesError, UnknownSessionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.cli.parser import Run

_INTERRUPTED = 130  # as a shell reports a process ended by SIGINT, and the next one by SIGPIPE
_BROKEN_PIPE = 141
_COMPLETE = "__complete"  # for the completion scripts; nobody types it
_OFFERED = 100  # sessions


def main(argv: list[str] | None = None) -> int:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # no text may fail because a terminal cannot show it
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")
    argv = sys.argv[1:] if argv is None else argv
    try:
        if argv[:1] == [_COMPLETE]:
            return _complete(argv[1:])
        parser = _build_parser()
        if argv[:1] and argv[0].startswith("-") and argv[0] in MEANINGS:  # else a word behind it is the unknown one
            parser.error(f"unrecognized arguments: {argv[0]}")
        args, unknown = parser.parse_known_args(argv)
        if unknown:  # told here, by the command that was meant
            args.usage_error(f"unrecognized arguments: {' '.join(unknown)}")
        code: int = args.run(args, os.environ)
        sys.stdout.flush()
    except SystemExit as request:  # of the argument parser
        return request.code if isinstance(request.code, int) else 0
    except HermesError as error:
        say(f"hermes: {error}{_remedy(error)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        # One that left the `exec` of a text, as every dataclass has, counts as unhandled until the next `exec`, and
        # `python -m` would end by the signal, after all.
        exec("")  # noqa: S102
        return _INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return _BROKEN_PIPE
    except OSError as error:
        _forget_stdout()
        print(f"hermes: {error}", file=sys.stderr)
        return 1
    return code


def _remedy(error: HermesError) -> str:
    """What a person at a terminal can do about an error that others may get, too."""
    unknown = isinstance(error, UnknownSessionError) or getattr(error, "code", "") == "session_not_found"
    return "; `hermes sessions` lists them" if unknown else ""


def _forget_stdout() -> None:
    """The interpreter writes what is left when it ends, and would complain about the same again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _build_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="hermes",
        description="Hermes keeps long-lived conversations with AI agents alive.",
        epilog=(
            "examples:\n"
            "  hermes daemon                       start it, in the foreground\n"
            "  hermes chat                         talk to it\n"
            "  hermes sessions                     see what it holds\n"
            "  hermes why SESSION                  have a session's state explained\n"
            "  hermes backup /backups/now.tar.gz   copy everything while it works\n\n"
            "Everything is kept under $HERMES_HOME if that is set, else in the platform's data directory.\n"
            "A session can be named by its id, the beginning of it or of its last part, or - for the last one.\n"
            "Errors are plain text on stderr and an exit code that is not 0; stdout stays empty, with --json too\n"
            "(but for `hermes config check` and `hermes status`, whose answer they are)."
        ),
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=f"hermes {__version__}")
    parser.set_defaults(run=_print_help(parser), usage_error=parser.error, json=False)
    commands = Commands(parser, required=False)
    for group in (
        daemon,
        status,
        chat,
        inspect,
        tail,
        trace,
        answering,
        grants,
        keys,
        processes,
        control,
        reload,
        dead_letters,
        send,
        pairing,
        setup,
        exchange,
        backup,
        service,
        storage,
        slack,
        config,
        trust,
    ):
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


def _complete(asked: list[str]) -> int:
    """The ids that could be meant. Quietly: somebody is in the middle of a line."""
    from hermes.cli.session_lookup import open_records, recent

    if asked == ["sessions"]:
        with suppress(HermesError), open_records(os.environ, quietly=True) as records:
            for session in recent(records, _OFFERED):
                print(session["id"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
