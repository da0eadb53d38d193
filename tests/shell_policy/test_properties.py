"""What holds for any command line: no disguise lowers its tier, and no text stops or holds up the parser."""

from __future__ import annotations

import shlex
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.shell_policy.bash.command_line import parse_command_line
from tests.shell_policy.test_corpus import CWD, HOME, TIERS, bypasses, gate

READERS = {
    "sh",
    "sh -s",
    "bash -i",
    "python3",
    "exec < x",
}  # fed by a shell that was given a text, they read its rest
ATTEMPTS = [
    (tier, command)
    for tier, command in bypasses()
    if "<<" not in command and "#" not in command and command not in READERS
]
PARSABLE = [
    (tier, command)
    for tier, command in ATTEMPTS
    if not parse_command_line(command, cwd=CWD, home=HOME).problem and not command.endswith(("&", "\\"))
]
PLAIN = [(tier, command) for tier, command in PARSABLE if command.split()[0].isalpha() and "(" not in command[:12]]
WRAPPINGS = [
    "true; {}",
    "true && {}",
    "false || {}",
    "{}; true",
    "{} | cat",
    "{} & true",
    "( {} )",
    "{{ {}; }}",
    "if true; then {}; fi",
    "if false; then :; else {}; fi",
    "while true; do {}; done",
    "for i in 1; do {}; done",
    "case x in x) {};; esac",
    "f() {{ {}; }}",
    "echo $( {} )",
    'echo "$( {} )"',
    "cat <( {} )",
    "x=$( {} )",
    "ls\n{}\nls",
    "! {}",
    "time {}",
    "ls # nothing\n{}",
    "[[ -n $( {} ) ]]",
    "{} > /dev/null 2>&1",
]
PREFIXES = ["env A=b", "nohup", "nice -n 5", "timeout 9", "command", "exec", "setsid", "stdbuf -oL", "env -i"]
BUILTINS = {
    "set",
    "export",
    "declare",
    "local",
    "read",
    "cd",
    "pushd",
    "source",
    "eval",
    "trap",
    "alias",
    "exec",
    "enable",
    "hash",
}
BUILTINS |= {
    "for",
    "while",
    "until",
    "if",
    "case",
    "select",
    "function",
    "time",
    "coproc",
    "printf",
    "let",
    "unset",
    "test",
}
REPEATED = [
    "$(",
    "${a:-",
    "$((",
    "((",
    "(",
    "{ ",
    "`",
    "if ",
    "<(",
    "case x in a) ",
    "f() { ",
    "env ",
    "sudo ",
    "docker ",
]
REPEATED += [
    "xargs ",
    "sh -c '",
    "eval ",
    "{a,b}",
    "[a",
    "*a",
    "ls;",
    "ls|",
    "a=$a$a;",
    "cat <<E\n",
    "open(",
    '"$(',
    "! ",
]
alphabet = st.text(alphabet="rm -f/~$(){}[]<>|&;'\"`\\\n#=*?!ab01,.:@%+^", max_size=60)
pieces = st.lists(
    st.sampled_from(
        [
            "$(",
            "${",
            "$((",
            "((",
            "))",
            "`",
            "'",
            '"',
            "<<E\n",
            "E\n",
            "case x in ",
            "esac",
            "if ",
            "fi",
            "do ",
            "done",
            "{a,b}",
            "rm -rf /",
            ";",
            "|",
            "&",
            "\n",
            "f() ",
            "{ ",
            "}",
            "a=",
            "(",
            ")",
            "$a",
            "\\",
            "eval ",
            "sh -c ",
            "for x in ",
            "[[ ",
            "]]",
            "#",
            "\x00",
            "$'\\x",
            "xargs ",
            "docker ",
            "env ",
            "<(",
            ">",
            "$[",
            "]",
            " ",
        ]
    ),
    max_size=120,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PARSABLE), st.lists(st.sampled_from(WRAPPINGS), min_size=1, max_size=3))
def test_no_surroundings_lower_the_tier(attempt: tuple[str, str], wrappings: list[str]) -> None:
    tier, command = attempt
    for wrapping in wrappings:
        command = wrapping.format(command)
    assert TIERS.index(gate(command).verdict) >= TIERS.index(tier), command  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLAIN), st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=3))
def test_no_wrapper_lowers_the_tier(attempt: tuple[str, str], prefixes: list[str]) -> None:
    tier, command = attempt
    if command.split()[0].rstrip(";") in BUILTINS:
        return  # those are words of the shell, and no programs
    wrapped = " ".join([*prefixes, command])
    assert TIERS.index(gate(wrapped).verdict) >= TIERS.index(tier), wrapped  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(PARSABLE),
    st.sampled_from(["sh -c {}", "bash -lc {}", "eval {}", "ssh host {}", "echo {} | sh", "bash <<< {}"]),
)
def test_no_shell_in_between_lowers_the_tier(attempt: tuple[str, str], form: str) -> None:
    tier, command = attempt
    wrapped = form.format(shlex.quote(command))
    assert TIERS.index(gate(wrapped).verdict) >= TIERS.index(tier), wrapped  # type: ignore[arg-type]


@given(
    st.sampled_from(PARSABLE),
    st.sampled_from(["sh <<'END'\n{}\nEND", "cat <<'END' | bash\n{}\nEND\n", "bash -s <<-'END'\n\t{}\n\tEND"]),
)
def test_no_here_document_lowers_the_tier(attempt: tuple[str, str], form: str) -> None:
    tier, command = attempt
    wrapped = form.format(command)
    assert TIERS.index(gate(wrapped).verdict) >= TIERS.index(tier), wrapped  # type: ignore[arg-type]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLAIN), st.data())
def test_no_quoting_of_the_name_lowers_the_tier(attempt: tuple[str, str], data: st.DataObject) -> None:
    tier, command = attempt
    name, space, rest = command.partition(" ")
    if name.rstrip(";") in BUILTINS or not name.isalpha():
        return
    at = data.draw(st.integers(0, len(name) - 1))
    octal = f"$'\\{ord(name[at]):03o}'"
    piece = data.draw(
        st.sampled_from(
            [f"'{name[at]}'", f'"{name[at]}"', f"\\{name[at]}", f"''{name[at]}", octal, f"\\\n{name[at]}"]
        )
    )
    quoted = name[:at] + piece + name[at + 1 :] + space + rest
    assert TIERS.index(gate(quoted).verdict) >= TIERS.index(tier), quoted  # type: ignore[arg-type]


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(max_size=80), alphabet, pieces))
def test_any_text_is_decided_soon(text: str) -> None:
    before = time.process_time()
    gate(text)
    assert time.process_time() - before < 1


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(REPEATED), st.integers(1, 4000))
def test_repetition_never_holds_it_up(piece: str, times: int) -> None:
    before = time.process_time()
    gate(piece * times)
    gate("python -c '" + piece * times)
    assert time.process_time() - before < 2
