"""Entry point of the command line: the table of commands, and the printing of errors.

Each expected error is one line on stderr and an exit code of its own. A command imports what it needs when it runs.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes import __version__
from hermes.domain.errors import HermesError, UnknownSessionError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.parser import ArgumentParser, Run

_INTERRUPTED = 130  # exit code of a shell for a process that SIGINT ended; below, for SIGPIPE
_BROKEN_PIPE = 141
_VERSION = ("--version", "-V", "version")
_COMPLETE = "__complete"  # called by the completion scripts only
_MAX_COMPLETIONS = 100  # sessions

# Modules below hermes.cli that add commands, in the order of `hermes --help`. Only the module of the given command is
# imported: all of them together take longer than most commands.
_GROUPS: dict[str, tuple[str, ...]] = {
    "commands.daemon": ("daemon",),
    "inspection.status": ("status",),
    "doctor.doctor": ("doctor",),
    "chat.chat": ("chat",),
    "inspection.ps": ("ps",),
    "inspection.top": ("top",),
    "inspection.inspect": ("sessions", "show", "why", "context"),
    "commands.search": ("search",),
    "inspection.tail": ("tail",),
    "inspection.trace": ("trace",),
    "commands.answer": ("approve", "deny", "answer"),
    "commands.grants": ("grants",),
    "commands.keys": ("keys",),
    "jobs.cron": ("cron",),
    "commands.processes": ("log", "kill"),
    "commands.control": ("stop", "restart", "end", "suspend", "resume", "compress", "delete"),
    "commands.reload": ("reload",),
    "commands.dashboard": ("dashboard",),
    "inspection.logs": ("logs",),
    "commands.outbox": ("outbox", "dead-letters"),
    "commands.send": ("send",),
    "events.event_commands": ("webhooks", "hooks", "channels"),
    "events.plugin_commands": ("plugins",),
    "commands.pairing": ("pairing",),
    "setup.setup": ("setup",),
    "upkeep.exchange": ("export", "import"),
    "upkeep.backup": ("backup", "restore"),
    "upkeep.service": ("service",),
    "upkeep.storage": ("storage",),
    "setup.slack_manifest": (),  # the command of a chat platform is found by importing all modules
    "commands.config": ("config",),
    "commands.tools": ("tools",),
    "commands.model": ("model",),
    "commands.trust": ("trust",),
    "skills.skill_commands": ("skills",),
    "memory.memory_commands": ("memory",),
    "commands.profile": ("profile",),
    "mcp.mcp_commands": ("mcp",),
}


def _chat_hint(unknown: list[str]) -> str:
    """Return the way to do what these arguments of `hermes chat` probably mean."""
    if unknown[0].partition("=")[0] in ("-m", "--model"):
        return "; `/model NAME` in the chat chooses a model, `hermes model set NAME` for all chats"
    return "" if unknown[0].startswith("-") else "; `hermes chat -z QUESTION` asks one question"


def main(argv: list[str] | None = None) -> int:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal cannot show must not raise
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")
    argv = sys.argv[1:] if argv is None else argv
    try:
        if argv[:1] == [_COMPLETE]:
            return _complete(argv[1:])
        if len(argv) == 1 and argv[0] in _VERSION:  # without the parser, which takes longer than the answer
            print(f"hermes {__version__}")
            return 0
        from hermes.cli.habit import translated

        argv = translated(argv) if argv else _default_command()
        parser = _build_parser(argv[0] if argv else "")
        _refuse_foreign_option(parser, argv)
        args, unknown = parser.parse_known_args(argv)
        if unknown:  # reported by the parser of the command, with its usage
            hint = _chat_hint(unknown) if argv[0] == "chat" else ""
            args.usage_error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        code: int = args.run(args, os.environ)
        sys.stdout.flush()
    except SystemExit as request:  # raised by argparse
        return request.code if isinstance(request.code, int) else 0
    except HermesError as error:
        from hermes.cli.output import print_text

        print_text(f"hermes: {error}{_remedy(error)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        # CPython marks an interrupt inside `exec` (which dataclasses use) as unhandled until the next `exec`. Without
        # this call `python -m` would end by the signal.
        exec("")  # noqa: S102
        if sys.stderr.isatty():  # the terminal has shown ^C; the prompt of the shell begins a line
            print(file=sys.stderr)
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


def _refuse_foreign_option(parser: ArgumentParser, argv: list[str]) -> None:
    """Report an option of a similar program: argparse would report the word after it."""
    if argv[:1] and argv[0].startswith("-"):
        from hermes.cli.suggestion import MEANINGS

        if argv[0] in MEANINGS:
            parser.error(f"unrecognized arguments: {argv[0]}")


def _default_command() -> list[str]:
    """Return the command line of `hermes` alone: a conversation on a terminal, an answer to a pipe, else help."""
    if sys.stdin.isatty():
        return ["chat"] if sys.stdout.isatty() else []
    with suppress(OSError, ValueError):  # stdin is closed
        mode = os.fstat(sys.stdin.fileno()).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISREG(mode):
            asked = sys.stdin.buffer.read().decode("utf-8", "replace").strip()
            return ["chat", f"--oneshot={asked}"] if asked else []
    return []


def _build_parser(command: str) -> ArgumentParser:
    """Return the parser of this command; of all commands if there is no such command."""
    from importlib import import_module

    from hermes.cli.parser import ArgumentParser, Commands, Help

    parser = ArgumentParser(
        prog="hermes",
        description="Hermes keeps long-lived conversations with AI agents alive.",
        epilog=(
            "examples:\n"
            "  hermes daemon                       start the daemon in the foreground\n"
            "  hermes                              start a conversation, on a terminal\n"
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
    chosen = [group for group, names in _GROUPS.items() if command in names]
    for group in chosen or _GROUPS:
        import_module(f"hermes.cli.{group}").add_commands(commands)
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

    from hermes.cli.parser import COMPLETION_PREAMBLE

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
