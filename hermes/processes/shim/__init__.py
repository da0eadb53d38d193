"""Shim: the program that supervises one background command, so that the daemon can restart.

    python -I -S -E -c ... FOLDER     the order comes on standard input, "ok" or what failed goes to its output

It runs the command in a session and group of its own with no descriptor but 0, 1 and 2, keeps what it writes, ends it
when told or when it takes too much, and says in files how it is and how it ended. In FOLDER:

    state.json    who runs: pids with their kernel start times and the boot they belong to. Written at the start.
    exit.json     how it ended. Written at the end, when nothing of the command is left and all output is stored.
    output.N      byte N * size and following of the output; only the last two are kept, so an offset needs no index
    stdin         a FIFO, as long as the command's input is open
    typed         what was sent to the input since the last newline; the daemon's own
    grace         seconds between SIGTERM and SIGKILL, if whoever stops it wants others than the usual ones
    why           why its end was asked for, in the words of whoever did; the daemon's own
    shim.err      what Python said when the shim itself failed

SIGTERM ends the command, a second one without mercy. SIGUSR1 closes its input. Whatever the command starts ends with
it: orphans come to the shim, which is their subreaper, also those that left the group. The command stays a zombie
until the last of them is gone, so that its number can belong to nobody else while the group is signalled.

There are as many shims as commands. Hence only modules that cost next to nothing (a test holds them to that), JSON
written by hand (with the library's, and the public `signal`, a shim would have half as much memory of its own again),
and a look at the command's processes that is the rarer the less they do.
"""
