"""The slash commands: what there is, how it is written, what it is called in help and menus. Pure.

A text is a command when it begins with a slash and one word. Paths and whatever else has a slash is not. A word that
looks like a command and is none is answered with a suggestion: it never reaches the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from enum import StrEnum

from hermes.domain.access.role import Role
from hermes.domain.types import Busy
from hermes.domain.values import dataclass

REASONING = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
_MUCH_ALIKE = 0.7  # of 1.0: two letters changed places, or one is wrong
_SHAPE = re.compile(r"/(\w[\w-]{0,31})(?:@(\w{1,64}))?(?:\s+(.*))?", re.DOTALL)


class CommandGroup(StrEnum):
    """In the order in which help shows them."""

    CONVERSATION = "Conversation"
    TURN = "While it works"
    CHOICES = "How it answers"
    KNOW = "What there is to know"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    name: str
    group: CommandGroup
    help: str
    usage: str = ""  # of its arguments
    aliases: tuple[str, ...] = ()
    details: str = ""  # what its own help says beyond the line
    choices: tuple[str, ...] = ()  # words that its argument can be, for completion
    needs_rest: bool = False  # not while a turn runs
    needs: Role = Role.GUEST  # the least role that may use it
    confirms: bool = False  # where there are buttons it may ask first, and whoever presses one means it once
    says: bool = False  # it is a message, which the inbound id makes the same one when it comes again

    @property
    def words(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    @property
    def written(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    command: SlashCommand
    argument: str = ""
    bot: str = ""  # whom it is addressed to, where it says: /help@bot
    word: str = ""  # as it was called, if not by its name


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    word: str
    suggestion: str = ""  # a command's name
    bot: str = ""

    @property
    def advice(self) -> str:
        meant = f"Did you mean /{self.suggestion}? " if self.suggestion else ""
        return (
            f"There is no command “{self.word}”. {meant}/help lists them. "
            "The agent has not seen this; to say it to the agent, put another word first."
        )


COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand(
        name="new",
        aliases=("reset",),
        group=CommandGroup.CONVERSATION,
        usage="[now] [title]",
        help="Begin afresh",
        details="Ends this conversation, and the turn that runs in it. It stays stored: /resume brings it back. It "
        "asks first while background processes run; now spares you the question.",
        confirms=True,
    ),
    SlashCommand(
        name="retry",
        group=CommandGroup.CONVERSATION,
        help="Have the last message answered once more",
        details="Takes the last turn back and sends its message again.",
        needs_rest=True,
    ),
    SlashCommand(
        name="undo",
        group=CommandGroup.CONVERSATION,
        usage="[n] [yes]",
        help="Take back the last turn, or the last n",
        details="The agent forgets what was said in them. What its tools did is not undone. In chats it asks before "
        "it takes back several; yes spares you the question.",
        needs_rest=True,
        confirms=True,
    ),
    SlashCommand(
        name="compress",
        aliases=("compact",),
        group=CommandGroup.CONVERSATION,
        usage="[topic]",
        help="Go on from a summary, to make room",
        details="With a topic, the summary keeps most about that. All that was said stays stored and searchable.",
        needs_rest=True,
    ),
    SlashCommand(
        name="branch",
        aliases=("fork",),
        group=CommandGroup.CONVERSATION,
        usage="[title]",
        help="Go on in a copy, and keep this as it is",
        needs_rest=True,
    ),
    SlashCommand(
        name="title",
        group=CommandGroup.CONVERSATION,
        usage="[text]",
        help="Show the title of this conversation, or set it",
    ),
    SlashCommand(
        name="sessions",
        group=CommandGroup.CONVERSATION,
        usage="[n]",
        help="List the last conversations",
        details="As many as n says, at most 50. The numbers can be used with /resume.",
    ),
    SlashCommand(
        name="resume",
        group=CommandGroup.CONVERSATION,
        usage="[id|number|title]",
        help="Take up an earlier conversation",
        details="By its id, by its number in the last list, or by its title or the beginning of it.",
    ),
    SlashCommand(
        name="stop",
        aliases=("cancel",),
        group=CommandGroup.TURN,
        help="Stop what runs now, and drop what waits",
    ),
    SlashCommand(
        name="restart",
        group=CommandGroup.TURN,
        usage="[yes]",
        help="Restart the daemon; what it was doing goes on afterwards",
        needs=Role.ADMIN,
        details="For the owner and for admins only. In chats it asks first; yes spares you the question.",
        choices=("yes",),
        confirms=True,
    ),
    SlashCommand(
        name="queue",
        aliases=("q",),
        group=CommandGroup.TURN,
        usage="TEXT",
        help="Say something that waits for the end of this turn",
        says=True,
    ),
    SlashCommand(
        name="steer",
        group=CommandGroup.TURN,
        usage="TEXT",
        help="Say something that the running turn takes into account",
        details="The agent sees it with the results of the tools that run now; if there are none, after the turn.",
        says=True,
    ),
    SlashCommand(
        name="approve",
        needs=Role.ADMIN,
        group=CommandGroup.TURN,
        usage="[session|always|show]",
        help="Let a tool call run that waits for permission",
        details="Once; for the rest of this conversation; or always, in every conversation. "
        "With show, see all of what would run first. For admins.",
        choices=("session", "always", "show"),
    ),
    SlashCommand(
        name="deny",
        group=CommandGroup.TURN,
        help="Do not let it run",
    ),
    SlashCommand(
        name="grants",
        needs=Role.ADMIN,
        group=CommandGroup.TURN,
        usage="[withdraw KIND]",
        help="What was allowed for good, and to take it back",
        details="Answering with always allows all commands of a kind in every conversation. It takes an admin.",
    ),
    SlashCommand(
        name="busy",
        group=CommandGroup.TURN,
        usage=f"[{'|'.join(Busy)}|default]",
        help="What a message does that comes while a turn runs",
        choices=(*Busy, "default"),
    ),
    SlashCommand(
        name="model",
        needs=Role.USER,
        group=CommandGroup.CHOICES,
        usage="[name|default]",
        help="Show the model of this conversation, or choose it",
        choices=("default",),
    ),
    SlashCommand(
        name="personality",
        aliases=("persona",),
        group=CommandGroup.CHOICES,
        usage="[name|none|list]",
        help="Choose a manner of speaking",
        choices=("none", "list"),
    ),
    SlashCommand(
        name="reasoning",
        needs=Role.USER,
        group=CommandGroup.CHOICES,
        usage=f"[{'|'.join(REASONING)}|default]",
        help="Choose how much the model thinks before it answers",
        choices=(*REASONING, "default"),
    ),
    SlashCommand(
        name="yolo",
        needs=Role.ADMIN,
        group=CommandGroup.CHOICES,
        usage="[on|off]",
        help="Let tools run without asking, in this conversation",
        details="What is blocked stays blocked. Without a word it changes from the one to the other.",
        choices=("on", "off"),
    ),
    SlashCommand(name="status", group=CommandGroup.KNOW, help="This conversation in a few lines"),
    SlashCommand(name="why", group=CommandGroup.KNOW, help="Why it is in the state that it is in"),
    SlashCommand(name="usage", group=CommandGroup.KNOW, help="Tokens, cost and context of this conversation"),
    SlashCommand(
        name="insights",
        needs=Role.ADMIN,
        group=CommandGroup.KNOW,
        usage="[--days] [N]",
        help="What was used by day and by model",
        details="Of the last 30 days, or as many as it is told, at most 365.",
    ),
    SlashCommand(
        name="processes",
        needs=Role.USER,
        aliases=("ps",),
        group=CommandGroup.KNOW,
        usage="[kill N|ID]",
        help="What runs in the background, or an end to one of it",
        details="Each with its age, what it did, and whether a reset waits for it. kill takes its number or its id.",
        choices=("kill",),
    ),
    SlashCommand(name="whoami", group=CommandGroup.KNOW, help="Who you are to Hermes"),
    SlashCommand(
        name="sethome",
        group=CommandGroup.KNOW,
        help="Have notices that belong to no chat told here",
        needs=Role.ADMIN,
        details="That Hermes restarts, say, or that a message could not be delivered. One chat on each platform.",
    ),
    SlashCommand(
        name="trust",
        needs=Role.ADMIN,
        group=CommandGroup.KNOW,
        usage="[DIRECTORY|approve DIGEST [DIRECTORY]|list|remove [DIRECTORY]]",
        help="Use the prompt files of a project (AGENTS.md and its like)",
        details="For the owner and for admins. Shows the files in a directory, by default the one that the "
        "conversation works in, with their digests; approve takes those. A file that changes has to be approved "
        "again.",
        choices=("approve", "list", "remove"),
    ),
    SlashCommand(
        name="help",
        aliases=("commands", "start"),
        group=CommandGroup.KNOW,
        usage="[command]",
        help="This list, or more about one command",
    ),
)

_BY_WORD = {word: command for command in COMMANDS for word in command.words}


def parse(text: str) -> Parsed | Unknown | None:
    """None: this is no command. What cannot be written down becomes `?`."""
    shape = _SHAPE.fullmatch(text.encode("utf-8", "replace").decode())
    if shape is None:
        return None
    word, bot, argument = shape[1].lower(), shape[2] or "", (shape[3] or "").strip()
    command = _BY_WORD.get(word)
    if command is None:
        return Unknown(word=word, suggestion=_nearest(word), bot=bot)
    return Parsed(command=command, argument=argument, bot=bot, word="" if word == command.name else word)


def _nearest(word: str) -> str:
    """What was probably meant: the only one that begins so, or one that is written nearly so."""
    begun = {command.name for each, command in _BY_WORD.items() if each.startswith(word)}
    if len(begun) == 1:
        return begun.pop()
    near = get_close_matches(word, _BY_WORD, n=1)
    return _BY_WORD[near[0]].name if near else ""


def is_nearly(word: str) -> bool:
    """Whether a command is written much like that: where the sign of a command is ordinary punctuation as well."""
    return bool(get_close_matches(word, _BY_WORD, n=1, cutoff=_MUCH_ALIKE))


def find(word: str) -> SlashCommand | None:
    """By name or alias, with or without its slash."""
    return _BY_WORD.get(word.strip().removeprefix("/").lower())


def completions(prefix: str) -> list[str]:
    """What a text that begins so can become: the command, then its argument where there is a choice."""
    begun, space, argument = prefix.lower().partition(" ")
    if not begun.startswith("/"):
        return []
    if not space:
        return sorted(f"/{word}" for word in _BY_WORD if word.startswith(begun[1:]))
    command = _BY_WORD.get(begun[1:])
    choices: Sequence[str] = () if command is None else command.choices
    if command is not None and command.name == "help":
        choices = [each.name for each in COMMANDS]
    return [f"{begun} {choice}" for choice in choices if choice.startswith(argument)]


def menu(role: Role = Role.OWNER) -> list[dict[str, str | list[str]]]:
    """What that role may use, for machines: bot menus, native slash commands, completion elsewhere."""
    return [
        {
            "name": command.name,
            "aliases": list(command.aliases),
            "usage": command.written,
            "help": command.help,
            "group": command.group.value,
            "choices": list(command.choices),
        }
        for command in COMMANDS
        if role.includes(command.needs)
    ]


# ---------------------------------------------------------------- help


GREETING = (
    "Hello! I am Hermes. Just write to me: I remember our conversation, and go on with it after a restart, too.\n\n"
    "/new begins afresh\n/stop stops what I am doing\n/status says how things stand\n/help lists all commands"
)


def help_text(name: str | None = None, *, narrow: bool = False, role: Role = Role.OWNER) -> str:
    """`narrow`: for a phone, where columns would break. The list has what that role may use."""
    if name is None:
        shown = [command for command in COMMANDS if role.includes(command.needs)]
        of_group = _narrow_help_of_group if narrow else _help_of_group
        groups = (of_group(group, [each for each in shown if each.group is group]) for group in CommandGroup)
        return "\n\n".join([*groups, *(["/help and a command's name says more."] if narrow else [])])
    command = find(name)
    if command is None:
        word = name.strip().removeprefix("/").lower()[:32]
        return Unknown(word=word, suggestion=_nearest(word)).advice
    lines = [command.written, f"{command.help}."]
    if command.details:
        lines.append(command.details)
    if command.aliases:
        lines.append("Also " + ", ".join(f"/{alias}" for alias in command.aliases) + ".")
    if command.needs_rest:
        lines.append("Not while a turn runs.")
    return "\n".join(lines)


def _help_of_group(group: CommandGroup, members: Sequence[SlashCommand]) -> str:
    width = max(len(_short(command)) for command in COMMANDS)
    return "\n".join([group.value, *(f"  {_short(command):<{width}}  {command.help}" for command in members)])


def _narrow_help_of_group(group: CommandGroup, members: Sequence[SlashCommand]) -> str:
    return "\n".join(
        [f"**{group.value}**", *(f"/{command.name}: {_uncapitalised(command.help)}" for command in members)]
    )


def _uncapitalised(text: str) -> str:
    return text[:1].lower() + text[1:]


def _short(command: SlashCommand) -> str:
    """As it is written, but for lists of words that would push everything else to the right."""
    return command.written if len(command.written) <= 26 else f"/{command.name} [...]"
