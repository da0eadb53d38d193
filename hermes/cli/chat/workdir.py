"""Working directory of a new `hermes chat`: the current directory, if the owner trusts it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.output import one_line, print_text
from hermes.config.trust import explain_unfit, home_directory, read_answers, remember_answer, unfit
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from hermes.config.home import Home


def chosen_workdir(home: Home, *, trust: bool, asks: bool) -> str | None:
    """Return this process's directory if the agent may work there. `asks`: a person can be asked on the terminal."""
    try:
        directory = Path(os.path.realpath(os.getcwd()))  # noqa: PTH109 - one error for both if it is gone
    except OSError:  # it was removed
        return None
    if reason := unfit(directory, person=home_directory(), own=(home.data_dir, home.config_file.parent)):
        if trust:
            raise HermesError(f"the agent cannot work in {one_line(str(directory))}: {explain_unfit(reason)}")
        return None
    answer = True if trust else read_answers(home.data_dir).get(str(directory))
    if answer is None and asks and sys.stdin.isatty() and sys.stdout.isatty():
        answer = _ask(directory)
        if answer is not None:
            remember_answer(home.data_dir, directory, trusted=answer)
    elif trust:
        remember_answer(home.data_dir, directory, trusted=True)
    return str(directory) if answer else None


def open_question(home: Home) -> Path | None:
    """Return this process's directory if the agent could work there and the owner has not decided yet."""
    try:
        directory = Path(os.path.realpath(os.getcwd()))  # noqa: PTH109
    except OSError:
        return None
    if unfit(directory, person=home_directory(), own=(home.data_dir, home.config_file.parent)):
        return None
    return directory if str(directory) not in read_answers(home.data_dir) else None


def _ask(directory: Path) -> bool | None:
    """Ask on the terminal. None if there is no answer."""
    while True:
        try:
            said = input(f"Let the agent work in {one_line(str(directory))}? (yes/no) ").strip().lower()
        except EOFError:
            print()
            return None
        if said in ("y", "yes"):
            return True
        if said in ("n", "no"):
            print_text("The agent works in its default directory. `hermes chat --trust` lets it work here.")
            return False
