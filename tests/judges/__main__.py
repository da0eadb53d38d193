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

HERE = Path(__file__).parent
LISTS = ("package.json", "package-lock.json")
INSTALL_WITHIN_S = 300
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1  # of <linux/sockios.h> and <net/if.h>


class CannotRun(Exception):  # noqa: N818 - a reason, not a failure of the tests
    """Says what this machine lacks."""


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--inside"]:
        return _inside(arguments[1:])
    lenient = "--if-possible" in arguments
    try:
        namespace = _namespace()
        folder = _installed(Path(os.environ.get("HERMES_TEST_JUDGES") or Path.home() / ".cache" / "hermes-test"))
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


def _installed(folder: Path) -> Path:
    stamp = folder / "installed"
    wanted = (HERE / "package-lock.json").read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return folder
    if not shutil.which("npm"):
        raise CannotRun("npm is missing")
    folder.mkdir(parents=True, exist_ok=True)
    for name in LISTS:
        shutil.copy(HERE / name, folder / name)
    install = [
        "npm",
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
        "--fetch-retry-mintimeout=1000",  # nobody waits long where there is no network
        "--fetch-retry-maxtimeout=3000",
        "--prefix",
        str(folder),
    ]
    try:
        done = subprocess.run(install, capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        raise CannotRun(f"npm did not install them within {INSTALL_WITHIN_S} s") from None
    if done.returncode:
        raise CannotRun(f"npm could not install them:\n{done.stderr.strip()[:300]}")
    stamp.write_text(wanted, encoding="utf-8")
    return folder


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
