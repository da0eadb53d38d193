"""Keys of the terminal interface, for the help screen and the documentation."""

from __future__ import annotations

from typing import Final

KEYS: Final = (
    ("Enter", "send the message; while an answer runs it is queued, steers or interrupts, as /busy says"),
    ("Alt-Enter, Ctrl-J, trailing \\", "begin a new line"),
    ("Up, Down", "earlier and later messages, from the first and the last line; kept across runs"),
    ("Tab", "complete a command, an @file or a session; else move to the next part"),
    ("Esc", "stop the answer; close a menu"),
    ("Ctrl-N", "stop the answer and send the message instead"),
    ("Ctrl-S", "steer: add the message to the running answer at its next step"),
    ("Ctrl-C", "copy the selection; else clear the editor; else stop the answer; twice: exit"),
    ("Ctrl-D", "exit, with an empty editor"),
    ("Ctrl-R", "find a session: by title, id or any word in it"),
    ("Ctrl-G", "write the message in $EDITOR"),
    ("Ctrl-O", "unfold or fold all tool calls; Enter or a click folds one"),
    ("Ctrl-B", "subagents and background processes: choose one, Enter shows it, x ends it after a yes; again: close"),
    ("Ctrl-T", "next theme"),
    ("PageUp, PageDown, mouse wheel", "scroll; at the top earlier messages are loaded"),
    ("Ctrl-End", "go to the end of the conversation, and follow it"),
    ("Shift-Tab", "move back through tool calls"),
    ("F1", "this help"),
)

LOCAL_COMMANDS: Final = (
    {"name": "quit", "aliases": ["exit", "q"], "help": "Exit; the session is kept", "choices": []},
    {"name": "theme", "aliases": [], "help": "Choose a theme", "choices": []},
    {
        "name": "copy",
        "aliases": [],
        "help": "Copy the last answer, or a code block of it: /copy code 1",
        "choices": ["code"],
    },
    {"name": "image", "aliases": [], "help": "Send a picture: /image PATH [text]", "choices": []},
    {"name": "keys", "aliases": [], "help": "Show keys and commands", "choices": []},
)
