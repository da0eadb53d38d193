"""Daemon in a child process of a chat."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing

import pytest

from hermes.cli.chat.child_daemon import ChildDaemon
from hermes.cli.client import AdminClient
from hermes.config.home import Home, is_free
from hermes.domain.errors import HermesError

DUMPABLE = """
import ctypes
from hermes.cli.chat.embedded import main
dumpable = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
before = dumpable()
main()
print(before, dumpable())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")
def test_tools_cannot_read_the_environment_of_an_embedded_daemon(home: Home) -> None:
    done = subprocess.run(
        [sys.executable, "-c", DUMPABLE],
        env={**os.environ, "HERMES_HOME": str(home.data_dir)},
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 0"), done.stderr


def test_child_answers_until_it_is_closed(home: Home) -> None:
    with closing(ChildDaemon(os.environ, shows_log=False)) as child:
        child.start()
        child.await_ready()
        assert AdminClient(home.socket).info()["ready"]
        child.start()  # it runs
        assert not child.problem()
    assert is_free(home)


def test_child_that_cannot_start_tells_why(home: Home) -> None:
    home.data_dir.joinpath("state.db").write_text("theirs")
    with closing(ChildDaemon(os.environ, shows_log=False)) as child:
        child.start()
        with pytest.raises(HermesError, match=r"did not start: the directory .* belongs to another program"):
            child.await_ready()
        assert "belongs to another program" in child.problem()


def test_child_that_shows_its_log_ends_the_chat_with_its_exit_code(home: Home) -> None:
    home.data_dir.joinpath("state.db").write_text("theirs")
    with closing(ChildDaemon(os.environ, shows_log=True)) as child:
        child.start()
        with pytest.raises(SystemExit) as ended:
            child.await_ready()
    assert ended.value.code == 78
