"""`make judges`: the tests of this folder, against servers that others wrote, in a network of their own.

The servers are npm packages in exact versions with checksums (package-lock.json), installed without their scripts
into a folder outside the repository: the one that HERMES_TEST_JUDGES names, or ~/.cache/hermes-test. The tests run in
a network namespace with nothing but loopback, because one of the servers listens on every interface. With
--if-possible a machine that cannot do this is told why, and nothing has failed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.npm_packages import CannotRun, installed

HERE = Path(__file__).parent
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1  # of <linux/sockios.h> and <net/if.h>


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--inside"]:
        return _inside(arguments[1:])
    lenient = "--if-possible" in arguments
    try:
        namespace = _namespace()
        folder = installed(HERE, Path(os.environ.get("HERMES_TEST_JUDGES") or Path.home() / ".cache" / "hermes-test"))
    except CannotRun as reason:
        print(f"The tests against servers of others were not run: {reason}", file=sys.stderr)
        return 0 if lenient else 1
    rest = [each for each in arguments if each != "--if-possible"]
    command = [*namespace, sys.executable, "-m", "tests.judges", "--inside", *rest]
    return subprocess.run(command, env={**os.environ, "HERMES_TEST_JUDGES": str(folder)}, check=False).returncode


def _namespace() -> list[str]:
    """The command that runs another one in a network of its own."""
    for command in (["unshare", "--map-root-user", "--net"], ["unshare", "--net"]):
        if (
            shutil.which("unshare")
            and not subprocess.run([*command, "true"], capture_output=True, check=False).returncode
        ):
            return command
    raise CannotRun("no network namespace can be made here (unshare); they need user namespaces, or root")


def _inside(arguments: list[str]) -> int:
    _raise_loopback()
    with tempfile.TemporaryDirectory(prefix="judges-") as folder:  # not where others clean up meanwhile
        options = ["-q", "-p", "no:cacheprovider", f"--basetemp={folder}/tests"]
        command = [sys.executable, "-m", "pytest", *options, str(HERE), *arguments]
        return subprocess.run(command, check=False).returncode


def _raise_loopback() -> None:
    """It is there in a new network, and down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(any_socket, _GET_FLAGS, asked))[1]
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh", b"lo", flags | _UP))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
