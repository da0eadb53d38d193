"""Suggestions for unknown commands: first by meaning, then by spelling.

A guess by spelling never names a command that stops or deletes something: people run what is suggested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hermes.config.platforms import PLATFORMS

if TYPE_CHECKING:
    from collections.abc import Iterable

HARMFUL: Final = frozenset({"delete", "end", "kill", "restore", "stop", "suspend", "uninstall", "withdraw", "revoke"})
_MIN_LENGTH: Final = 4  # of a synonym that a misspelt word can mean
_SIMILARITY: Final = 0.7  # ratio of difflib, from 0 to 1

_CHAT = "`hermes chat` starts a conversation, `hermes chat -z QUESTION` asks one question"
_RESUME = "`hermes chat -r SESSION` continues a session"
_DAEMON = "`hermes daemon` runs the daemon in this terminal, `hermes service install` as a service"
_CHECK = "`hermes doctor` checks the whole installation, `hermes status` the daemon"
_EDIT = "`hermes config set KEY VALUE` or `hermes config edit`, then `hermes reload`"
_LOGS = "`hermes logs` prints the daemon's log, `hermes tail` events of sessions"
_LIST = "`hermes sessions` lists sessions"
_LIVE = "`hermes top` watches what runs, `hermes ps` prints it once, `hermes tail` prints events"
_UPDATE = "update the checkout or package with the tool that installed it, then `hermes restart`"
_ABSENT = "Hermes does not have this"
_PLATFORMS = f"the chat platforms are {' and '.join(PLATFORMS)} (`hermes setup PLATFORM`)"

# Commands of similar programs, and synonyms of our commands.
MEANINGS: Final = {
    **dict.fromkeys(("ask", "new", "prompt", "talk"), _CHAT),
    **dict.fromkeys(("attach", "connect", "continue", "open"), _RESUME),
    **dict.fromkeys(("launch", "run", "serve", "server", "start", "up"), _DAEMON),
    **dict.fromkeys(("check", "diagnose", "health", "ping", "test"), _CHECK),
    **dict.fromkeys(("auth", "key", "keys", "login"), "set model.api_key_file or model.api_key_env: " + _EDIT),
    **dict.fromkeys(("configure", "edit", "set", "settings"), _EDIT),
    **dict.fromkeys(("debug", "journal"), _LOGS),
    **dict.fromkeys(("conversations", "history", "list", "ls"), _LIST),
    **dict.fromkeys(("jobs", "monitor", "watch"), _LIVE),
    **dict.fromkeys(("cost", "insights", "tokens", "usage"), "type /usage or /insights in `hermes chat`"),
    **dict.fromkeys(("models", "provider", "providers"), "`hermes model` shows, lists, checks and chooses models"),
    **dict.fromkeys(("tool", "toolset", "toolsets"), "`hermes tools` lists the tools and toggles them"),
    **dict.fromkeys(("self-update", "update", "upgrade"), _UPDATE),
    **dict.fromkeys(
        ("init", "install", "onboard", "wizard"), "`hermes setup` sets up model, tools, chats and service"
    ),
    **dict.fromkeys(("discord", "email", "matrix", "platforms", "signal", "whatsapp"), _PLATFORMS),
    **dict.fromkeys(PLATFORMS, _PLATFORMS),
    **dict.fromkeys(("claw", "cron", "memory", "migrate", "plugins", "skill", "skills"), _ABSENT),
    **dict.fromkeys(("sessions find", "sessions grep"), "`hermes sessions search TEXT` searches all messages"),
    "gateway": _DAEMON,
    "commands": "`hermes --help` lists the commands",
    "-v": "`hermes --version` prints the version",
    **dict.fromkeys(("remove", "rm"), "`hermes sessions` lists sessions; `hermes --help` shows how to remove one"),
    **dict.fromkeys(("move", "mv", "rename", "title"), "`hermes sessions rename ID TITLE` sets the title"),
    **dict.fromkeys(("grep", "find", "search"), "`hermes sessions search TEXT` searches all messages"),
    **dict.fromkeys(("metrics", "stats"), "`hermes storage stats` measures the store, `hermes status` the daemon"),
    **dict.fromkeys(("exec", "shell"), _CHAT),
    **dict.fromkeys(("permissions", "allow"), "`hermes approve ID` approves a request, `hermes grants` lists grants"),
    **dict.fromkeys(
        ("inspect", "describe", "info", "get"), "`hermes show ID` shows one session, `hermes status` the daemon"
    ),
    **dict.fromkeys(
        ("snapshot", "dump", "save"), "`hermes backup FILE` saves everything, `hermes export ID` one session"
    ),
    **dict.fromkeys(("who", "users", "whoami"), "`hermes pairing list` lists people, `hermes keys list` API keys"),
    **dict.fromkeys(("browser", "gui", "ui", "web"), "`hermes dashboard --open` opens the pages in a browser"),
    **dict.fromkeys(("fallback", "fallbacks"), "`hermes config set model.fallbacks` lists models to fall back to"),
    **dict.fromkeys(("profile", "profiles"), "each HERMES_HOME has its own settings and sessions"),
    **dict.fromkeys(("proxy", "api"), "the daemon serves an OpenAI API; `hermes status` shows its address"),
    **dict.fromkeys(("secret", "secrets"), "the settings name files and variables with keys: `hermes config edit`"),
    **dict.fromkeys(("task", "tasks", "runs"), _LIVE),
    **dict.fromkeys(
        ("acp", "bundles", "checkpoints", "desktop", "honcho", "kanban", "lsp", "moa", "portal", "project"), _ABSENT
    ),
    **dict.fromkeys(("postinstall", "security"), _CHECK),
    "skill": "`hermes skills` manages skills",
    "image": _CHAT,
    "uninstall": "`hermes service uninstall` removes the service; then delete the checkout or package, and the home",
}


def answer_to(word: str, parent: str, commands: Iterable[str]) -> str:
    """Return a suggestion for an unknown command of `parent` ("" is hermes itself), or an empty text."""
    if meaning := MEANINGS.get(f"{parent} {word}".strip()):
        return meaning
    from difflib import get_close_matches

    harmless = [name for name in commands if name not in HARMFUL]
    if close := get_close_matches(word, harmless, n=1, cutoff=_SIMILARITY):
        return f"did you mean {close[0]}?"
    known = [name for name in MEANINGS if len(name) > _MIN_LENGTH and " " not in name]
    meant = get_close_matches(word, known, n=1, cutoff=_SIMILARITY) if not parent else []
    return MEANINGS[meant[0]] if meant else ""
