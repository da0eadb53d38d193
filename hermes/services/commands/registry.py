"""Registry of the slash commands: names, arguments, help and menus. Pure.

A text is a command if it starts with a slash and one word. Paths and other texts with slashes are not. An unknown
command is answered with a suggestion and never reaches the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from enum import StrEnum

from hermes.domain.access.role import Role
from hermes.domain.turn.submission import Busy
from hermes.domain.values import dataclass

REASONING = ("none", "minimal", "low", "medium", "high", "xhigh")
_MIN_SIMILARITY = 0.7  # similarity for `is_nearly`: two letters swapped, or one wrong
_SHAPE = re.compile(r"/(\w[\w-]{0,63})(?:@(\w{1,64}))?(?:\s+(.*))?", re.DOTALL)


class CommandGroup(StrEnum):
    """Groups in the order of the help text."""

    CONVERSATION = "Conversation"
    TURN = "During a turn"
    CHOICES = "Settings"
    KNOW = "Information"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    name: str
    group: CommandGroup
    help: str
    usage: str = ""  # arguments
    aliases: tuple[str, ...] = ()
    details: str = ""  # more text for the command's own help
    choices: tuple[str, ...] = ()  # argument values, for completion
    needs_rest: bool = False  # refused while a turn runs
    needs: Role = Role.GUEST  # minimum role
    confirms: bool = False  # may ask for confirmation with buttons, which work once
    says: bool = False  # submits a message, made unique by its inbound id

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
    bot: str = ""  # bot that it is addressed to: /help@bot
    word: str = ""  # alias that was used, if any


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Name that is not a command. It may be the name of a skill."""

    word: str
    argument: str = ""
    suggestion: str = ""  # name of a command
    bot: str = ""

    @property
    def advice(self) -> str:
        meant = f"Did you mean /{self.suggestion}? " if self.suggestion else ""
        return (
            f"Unknown command “{self.word}”. {meant}/help lists all commands. "
            "The agent has not seen this message. To send it to the agent, start with another word."
        )


COMMANDS: tuple[SlashCommand, ...] = (
    SlashCommand(
        name="new",
        aliases=("reset",),
        group=CommandGroup.CONVERSATION,
        usage="[now] [title]",
        help="Start a new conversation",
        details="Ends this conversation and its running turn. It stays stored: /resume continues it. Asks for "
        "confirmation while background processes run; now skips the question.",
        confirms=True,
    ),
    SlashCommand(
        name="retry",
        group=CommandGroup.CONVERSATION,
        help="Answer the last message again",
        details="Undoes the last turn and sends its message again.",
        needs_rest=True,
    ),
    SlashCommand(
        name="undo",
        group=CommandGroup.CONVERSATION,
        usage="[n] [yes]",
        help="Undo the last turn, or the last n turns",
        details="The agent forgets these turns. The effects of its tools are not undone. In chats it asks for "
        "confirmation before it undoes several; yes skips the question.",
        needs_rest=True,
        confirms=True,
    ),
    SlashCommand(
        name="rollback",
        needs=Role.USER,
        group=CommandGroup.CONVERSATION,
        usage="[N|diff N]",
        help="List checkpoints of the files, or return to one",
        details="A checkpoint is taken before the first file change of each turn; 1 is the last one. diff shows what "
        "would change. Files that the directory ignores on purpose, such as .git, are not part of it.",
        choices=("diff",),
        needs_rest=True,
    ),
    SlashCommand(
        name="compress",
        aliases=("compact",),
        group=CommandGroup.CONVERSATION,
        usage="[topic]",
        help="Continue from a summary, to free context",
        details="With a topic, the summary focuses on it. All messages stay stored and searchable.",
        needs_rest=True,
    ),
    SlashCommand(
        name="branch",
        aliases=("fork",),
        group=CommandGroup.CONVERSATION,
        usage="[title]",
        help="Continue in a copy and keep this conversation unchanged",
        needs_rest=True,
    ),
    SlashCommand(
        name="title",
        group=CommandGroup.CONVERSATION,
        usage="[text]",
        help="Show or set the title of this conversation",
    ),
    SlashCommand(
        name="sessions",
        group=CommandGroup.CONVERSATION,
        usage="[n]",
        help="List recent conversations",
        details="Shows n conversations, at most 50. Use the numbers with /resume.",
    ),
    SlashCommand(
        name="resume",
        group=CommandGroup.CONVERSATION,
        usage="[id|number|title]",
        help="Continue an earlier conversation",
        details="By its id, its number in the last list, its title, or the start of its title.",
    ),
    SlashCommand(
        name="handoff",
        needs=Role.USER,
        group=CommandGroup.CONVERSATION,
        usage="[PLATFORM [CHAT]|back]",
        help="Move this conversation to another chat or platform",
        details="Without an argument it lists the chats. PLATFORM is its home channel (/sethome), for the owner and "
        "admins. CHAT is an id or name that Hermes knows: any for the owner and admins, else one where you have a "
        "conversation. Both chats are told, and what is written in either belongs to it. back returns it.",
        choices=("back",),
        needs_rest=True,
    ),
    SlashCommand(
        name="stop",
        aliases=("cancel",),
        group=CommandGroup.TURN,
        help="Stop the running turn and drop queued messages",
    ),
    SlashCommand(
        name="restart",
        group=CommandGroup.TURN,
        usage="[yes]",
        help="Restart the daemon; interrupted turns continue afterwards",
        needs=Role.ADMIN,
        details="For the owner and admins. In chats it asks for confirmation; yes skips the question.",
        choices=("yes",),
        confirms=True,
    ),
    SlashCommand(
        name="queue",
        aliases=("q",),
        group=CommandGroup.TURN,
        usage="TEXT",
        help="Send a message that waits for the end of this turn",
        says=True,
    ),
    SlashCommand(
        name="steer",
        group=CommandGroup.TURN,
        usage="TEXT",
        help="Send a message that the running turn takes into account",
        details="The agent sees it with the results of the running tools, or after the turn if none run.",
        says=True,
    ),
    SlashCommand(
        name="background",
        needs=Role.USER,
        aliases=("bg",),
        group=CommandGroup.TURN,
        usage="PROMPT",
        help="Let a subagent work on this beside the conversation",
        details="It has its own context and knows only the prompt. Its report comes into this chat when no turn "
        "runs. /agents lists, stops and steers it.",
    ),
    SlashCommand(
        name="goal",
        needs=Role.USER,
        group=CommandGroup.TURN,
        usage="[TEXT|pause|resume|clear]",
        help="Pursue a goal over several turns",
        details="After each turn a judge decides if the goal is reached, and else starts the next turn, up to "
        "goals.max_turns. Without an argument it shows the goal. A stopped or failed turn pauses it.",
        choices=("status", "pause", "resume", "clear"),
        says=True,
    ),
    SlashCommand(
        name="approve",
        needs=Role.ADMIN,
        group=CommandGroup.TURN,
        usage="[session|always|show]",
        help="Approve the tool call that waits for permission",
        details="Without an argument once, with session for this conversation, with always for every conversation. "
        "With show, display the whole command first. For admins.",
        choices=("session", "always", "show"),
    ),
    SlashCommand(
        name="deny",
        group=CommandGroup.TURN,
        help="Deny the tool call that waits for permission",
    ),
    SlashCommand(
        name="grants",
        needs=Role.ADMIN,
        group=CommandGroup.TURN,
        usage="[withdraw KIND]",
        help="List or withdraw standing grants",
        details="`/approve always` grants all commands of a kind in every conversation. For admins.",
    ),
    SlashCommand(
        name="busy",
        group=CommandGroup.TURN,
        usage=f"[{'|'.join(Busy)}|default]",
        help="Choose what a message does while a turn runs",
        choices=(*Busy, "default"),
    ),
    SlashCommand(
        name="model",
        needs=Role.USER,
        group=CommandGroup.CHOICES,
        usage="[[provider:]model|default]",
        help="Show or set the model of this conversation",
        choices=("default",),
    ),
    SlashCommand(
        name="personality",
        aliases=("persona",),
        group=CommandGroup.CHOICES,
        usage="[name|none|list]",
        help="Show or set the personality",
        choices=("none", "list"),
    ),
    SlashCommand(
        name="reasoning",
        needs=Role.USER,
        group=CommandGroup.CHOICES,
        usage=f"[{'|'.join(REASONING)}|default|show|hide]",
        help="Set the reasoning effort, or show the reasoning",
        choices=(*REASONING, "default", "show", "hide"),
    ),
    SlashCommand(
        name="yolo",
        needs=Role.ADMIN,
        group=CommandGroup.CHOICES,
        usage="[on|off]",
        help="Run tools without approval in this conversation",
        details="Blocked commands stay blocked. Without an argument it toggles.",
        choices=("on", "off"),
    ),
    SlashCommand(name="status", group=CommandGroup.KNOW, help="Show a summary of this conversation's state"),
    SlashCommand(name="why", group=CommandGroup.KNOW, help="Explain the state of this conversation"),
    SlashCommand(name="usage", group=CommandGroup.KNOW, help="Show tokens, cost and context of this conversation"),
    SlashCommand(
        name="context",
        group=CommandGroup.KNOW,
        help="Show what fills the context window, by part",
        details="Tokens are estimated, and the provider's count of the last request is shown beside them.",
    ),
    SlashCommand(
        name="insights",
        needs=Role.ADMIN,
        group=CommandGroup.KNOW,
        usage="[--days] [N]",
        help="Show usage by day and by model",
        details="Covers the last 30 days, or N days, at most 365.",
    ),
    SlashCommand(
        name="processes",
        needs=Role.USER,
        aliases=("ps",),
        group=CommandGroup.KNOW,
        usage="[kill N|ID]",
        help="List or kill background processes",
        details="Shows age and activity of each, and if it delays a reset. kill takes a number or an id.",
        choices=("kill",),
    ),
    SlashCommand(
        name="agents",
        needs=Role.USER,
        aliases=("tasks",),
        group=CommandGroup.KNOW,
        usage="[show|stop|steer N]",
        help="List, follow, stop or steer subagents",
        details="/agents show N prints the last steps of one, stop N or stop all ends it, and steer N TEXT sends it "
        "a message that it reads with the results of its tools. N is a number of the list or an id.",
        choices=("show", "stop", "steer"),
    ),
    SlashCommand(name="platforms", group=CommandGroup.KNOW, help="Show the state of the chat platforms"),
    SlashCommand(name="whoami", group=CommandGroup.KNOW, help="Show your identity and role"),
    SlashCommand(
        name="sethome",
        group=CommandGroup.KNOW,
        help="Make this chat the home channel for notices",
        needs=Role.ADMIN,
        details="Receives notices such as restarts and failed deliveries. One chat per platform.",
    ),
    SlashCommand(
        name="trust",
        needs=Role.ADMIN,
        group=CommandGroup.KNOW,
        usage="[DIRECTORY|approve DIGEST [DIRECTORY]|list|remove [DIRECTORY]]",
        help="Approve the prompt files of a project, such as AGENTS.md",
        details="For the owner and admins. Shows the files in a directory with their digests, by default in the "
        "conversation's working directory. approve takes these digests. A changed file has to be approved "
        "again.",
        choices=("approve", "list", "remove"),
    ),
    SlashCommand(
        name="memory",
        needs=Role.USER,
        group=CommandGroup.KNOW,
        usage="[add|replace|remove|undo|log|diff|pending|approve|reject …]",
        help="Show, edit and undo what Hermes remembers",
        details="Without an argument it shows the notes of the agent (memory) and about you (user). Edit them with "
        "add TEXT, replace N TEXT and remove N; user after the first word means the notes about you. undo takes the "
        "last change back, and again the one before; undo N goes to the notes after change N; log and diff N show "
        "changes. pending lists changes by the agent that wait for approve N or reject N. In a shared chat it is "
        "about the chat's notes.",
        choices=("add", "replace", "remove", "undo", "log", "diff", "pending", "approve", "reject"),
    ),
    SlashCommand(
        name="cron",
        group=CommandGroup.KNOW,
        usage="[action] [job]",
        help="Manage scheduled jobs",
        details="list, create SCHEDULE PROMPT, edit JOB SCHEDULE, show, pause, resume, run, remove, history. "
        "A schedule is 30m (once), every 2h, five cron fields or an ISO time.",
        needs=Role.USER,
    ),
    SlashCommand(
        name="skills",
        needs=Role.USER,
        group=CommandGroup.KNOW,
        usage="[text|pending|diff NAME N|approve NAME N|reject NAME N]",
        help="List skills; /NAME loads one into the turn",
        details="Shows the skills whose name or description contains the text. /NAME TEXT sends the text together "
        "with the instructions of the skill NAME. The owner and admins see with pending the changes that the agent "
        "proposes, and decide about them.",
        choices=("pending", "diff", "approve", "reject"),
    ),
    SlashCommand(
        name="profile",
        needs=Role.USER,
        group=CommandGroup.KNOW,
        usage="[N|forget N|forget all]",
        help="Show what Hermes believes about you, and why",
        details="With a number it shows the evidence of that belief. forget removes a belief and its history; no "
        "copy of it is kept. Only in the terminal, the API and private chats.",
        choices=("forget",),
    ),
    SlashCommand(
        name="search",
        group=CommandGroup.KNOW,
        usage="[since:7d] [until:TIME] [platform:NAME] [person:PLATFORM:USER] [role:user] WORDS",
        help="Search earlier conversations",
        details='All words must occur. "a phrase", -not and this OR that work. Finds what you may read here: '
        "your own conversations in a private chat, in a group only that of the group.",
    ),
    SlashCommand(
        name="mcp",
        group=CommandGroup.KNOW,
        usage="[list|show NAME|test NAME|approve NAME|stop NAME|questions|answer ID TEXT|decline ID]",
        help="Show MCP servers, and answer their questions",
        details="answer and decline are for the person whom a server asks. show, test, approve and stop are for the "
        "owner and admins; approve accepts new and changed tools.",
        choices=("list", "show", "test", "approve", "stop", "questions", "answer", "decline"),
    ),
    SlashCommand(
        name="help",
        aliases=("commands", "start"),
        group=CommandGroup.KNOW,
        usage="[command]",
        help="Show this list, or help for one command",
    ),
)

_BY_WORD = {word: command for command in COMMANDS for word in command.words}


def parse(text: str) -> Parsed | Unknown | None:
    """Parse a command; None if the text is not one. Unencodable characters become `?`."""
    shape = _SHAPE.fullmatch(text.encode("utf-8", "replace").decode())
    if shape is None:
        return None
    word, bot, argument = shape[1].lower(), shape[2] or "", (shape[3] or "").strip()
    command = _BY_WORD.get(word)
    if command is None:
        return Unknown(word=word, argument=argument, suggestion=nearest(word), bot=bot)
    return Parsed(command=command, argument=argument, bot=bot, word="" if word == command.name else word)


def nearest(word: str) -> str:
    """Return the command that was probably meant: the only one with this prefix, or the most similar one."""
    begun = {command.name for each, command in _BY_WORD.items() if each.startswith(word)}
    if len(begun) == 1:
        return begun.pop()
    near = get_close_matches(word, _BY_WORD, n=1)
    return _BY_WORD[near[0]].name if near else ""


def is_nearly(word: str) -> bool:
    """Return True if the word is very similar to a command, for platforms that use a punctuation mark as prefix."""
    return bool(get_close_matches(word, _BY_WORD, n=1, cutoff=_MIN_SIMILARITY))


def find(word: str) -> SlashCommand | None:
    """Find a command by name or alias, with or without slash."""
    return _BY_WORD.get(word.strip().removeprefix("/").lower())


def completions(prefix: str) -> list[str]:
    """Return completions of a prefix: command names, then argument values."""
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


def menu(role: Role = Role.OWNER, added: Sequence[SlashCommand] = ()) -> list[dict[str, str | list[str]]]:
    """Return the commands of a role as data, for bot menus, native slash commands and completion.

    `added`: commands of the owner and of plugins.
    """
    return [
        {
            "name": command.name,
            "aliases": list(command.aliases),
            "usage": command.written,
            "help": command.help,
            "group": command.group.value,
            "choices": list(command.choices),
        }
        for command in (*COMMANDS, *added)
        if role.includes(command.needs)
    ]
