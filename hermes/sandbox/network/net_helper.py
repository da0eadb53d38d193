"""Program that opens listening sockets inside sandboxes.

    python -I -S net_helper.py        a stream socket on descriptor 0; requests and answers carry descriptors

A request is one byte and the network namespace of a sandbox. The answer is one byte and a socket that listens on the
sandbox's loopback, or the number of the error. A socket belongs to the namespace in which it was made, and can be
used anywhere. Each request runs in a process of its own: a process cannot leave a user namespace that it entered.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import sys
import time

_NS_GET_USERNS = 0xB701
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_TRIES, _PAUSE_S = 200, 0.005  # until the sandbox has set up its loopback


def main() -> None:
    port = int(sys.argv[1])
    daemon = socket.socket(fileno=0)
    libc = ctypes.CDLL(None, use_errno=True)
    while True:
        request, descriptors, _, _ = socket.recv_fds(daemon, 1, 1)
        if not request:
            return
        child = os.fork()
        if child == 0:
            _answer(daemon, libc, descriptors[0], port)
        os.waitpid(child, 0)
        os.close(descriptors[0])


def _answer(daemon: socket.socket, libc: ctypes.CDLL, namespace: int, port: int) -> None:
    try:
        owner = fcntl.ioctl(namespace, _NS_GET_USERNS)
        if os.geteuid() != 0:  # root needs no user namespace to enter
            _enter(libc, owner, _NEW_USER)
        _enter(libc, namespace, _NEW_NET)
        listener = _listener(port)
        socket.send_fds(daemon, [b"\0"], [listener.fileno()])
    except OSError as error:
        daemon.send(bytes((min(error.errno or errno.EIO, 255),)))
    finally:
        os._exit(0)


def _enter(libc: ctypes.CDLL, namespace: int, kind: int) -> None:
    if libc.setns(namespace, kind):
        raise OSError(ctypes.get_errno(), "setns")


def _listener(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for tries_left in reversed(range(_TRIES)):
        try:
            made.bind(("127.0.0.1", port))
            break
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL or not tries_left:
                raise
            time.sleep(_PAUSE_S)
    made.listen(64)
    return made


if __name__ == "__main__":
    main()
