"""The language of the rule table: each kind of condition, and errors in an entry."""

from __future__ import annotations

import re

import pytest

from hermes.shell_policy.bash.command_line import parse_command_line
from hermes.shell_policy.finding import Case
from hermes.shell_policy.protected_path import LookupContext
from hermes.shell_policy.rules.rule_table import ASKED, BLOCKED
from hermes.shell_policy.rules.table_rules import find_rules, parse_table
from tests.shell_policy.test_corpus import CWD, HOME

TABLE = r"""
any: it is used
open gio
verb: the verb has an argument
npm / config|c set|delete
git / restore !--staged
argument: an argument matches
curl = ftp://.*|
  ws://.*
crontab != -l
first: one of the first words
apt ? remove|purge
text: the arguments contain it
socat ~ (?i)listen
options: an option is given
nc : -l --listen
several: all conditions hold
rm + & != --help & = x
version: a versioned name
pip = uninstall
"""


def rules(line: str) -> list[str]:
    place = LookupContext(cwd=CWD, home=HOME, hermes_home="")
    [command] = parse_command_line(line, cwd=CWD, home=HOME).commands
    return [finding.rule for finding in find_rules(parse_table(TABLE), Case.of(command, place))]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("open a.pdf", ["any"]),
        ("gio", ["any"]),
        ("open --help", []),
        ("npm config set a b", ["verb"]),
        ("npm --loglevel silent c delete a", ["verb"]),
        ("npm config get a", []),
        ("npm run config set", ["verb"]),
        ("git -C x restore a", ["verb"]),
        ("git restore --staged a", []),
        ("curl ws://x", ["argument"]),
        ("curl https://x", []),
        ("crontab", ["argument"]),
        ("crontab -l", []),
        ("apt -y remove x", ["first"]),
        ("apt install a b c remove", []),
        ("socat TCP-LISTEN:1 -", ["text"]),
        ("nc -vl 1", ["options"]),
        ("nc --listen=1", ["options"]),
        ("nc -v x", []),
        ("rm x", ["several"]),
        ("rm --help x", []),
        ("pip3.12 uninstall x", ["version"]),
        ("ls open", []),
    ],
)
def test_an_entry_matches_as_its_conditions_say(line: str, found: list[str]) -> None:
    assert rules(line) == found


@pytest.mark.parametrize("entry", ["rule: why\nprogram = (", "rule: why\npro(gram", "rule: why\nprogram / ("])
def test_a_malformed_entry_is_an_error(entry: str) -> None:
    with pytest.raises((ValueError, re.error)):
        parse_table(entry)


def test_every_rule_has_programs() -> None:
    for table in (ASKED, BLOCKED):
        headers = re.findall(r"^([a-z\d-]+): ", table, re.MULTILINE)
        used = {row.finding.rule for found in parse_table(table).values() for row in found}
        assert used == set(headers)
