"""Shim: the program that supervises one background command, so that the daemon can restart.

    python -I -S -E -c ... FOLDER     reads the order from standard input, writes "ok" or the error to its output

The shim runs the command in its own session and group, with the descriptors 0, 1 and 2 only. It stores the output,
ends the command on request or at a limit, and writes state and result to files. In FOLDER:

    state.json    pids with their kernel start times and boot id. Written at the start.
    exit.json     result. Written when all processes of the command have ended and all output is stored.
    output.N      output from byte N * size on; only the last two are kept, so an offset needs no index
    stdin         a FIFO that exists while the command's input is open
    typed         input since the last newline; used by the daemon only
    grace         seconds between SIGTERM and SIGKILL, if not the default
    why           reason of a kill request; used by the daemon only
    shim.err      Python's error output if the shim itself failed

SIGTERM ends the command; a second one sends SIGKILL immediately. SIGUSR1 closes its input. All processes that the
command starts end with it. The shim is their subreaper, so it adopts orphans, also those that left the group. The
command stays a zombie until the last of them has ended, so its pid cannot be reused while the group is signalled.

There are as many shims as commands, so a shim must be small. It imports only cheap modules (a test checks this) and
writes JSON by hand: the `json` module and the public `signal` would add half of its own memory again. It inspects the
command's processes less often while they use no processor time.
"""
