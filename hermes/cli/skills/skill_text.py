"""Answers about skills as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hermes.cli.output import moment

_MAX_FINDINGS = 10


def text_of(verb: str, answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of an answer."""
    yield from _TEXTS.get(verb, _done)(answer)


def findings(answer: Mapping[str, Any]) -> Iterator[str]:
    for each in answer["findings"][:_MAX_FINDINGS]:
        place = f"{each['path']}:{each['line']}" if each["line"] else each["path"]
        yield f"{each['verdict']}: {place} {each['reason']}"
    if (more := len(answer["findings"]) - _MAX_FINDINGS) > 0:
        yield f"{more} more"


def _listed(answer: Mapping[str, Any]) -> Iterator[str]:
    if not answer["skills"]:
        yield f"There are no skills in {answer['directory']}."
    for each in answer["skills"]:
        place = f"{each['category']}/{each['name']}" if each["category"] else each["name"]
        marks = [*filter(None, (each["tier"], "pinned" if each["pinned"] else ""))]
        about = f"cannot be used: it {each['problem']}" if each["problem"] else each["description"]
        shown = f" ({', '.join(marks)})" if marks else ""
        yield f"{place}{shown}: {about}"
    if answer["archived"]:
        yield f"Removed or archived: {', '.join(answer['archived'])}. `hermes skills revert NAME` brings one back."
    for each in answer["waiting"]:
        yield f"Waits for approval: {each['name']} {each['number']} ({each['wish']}) {each['note']}".rstrip()


def _shown(answer: Mapping[str, Any]) -> Iterator[str]:
    yield f"{answer['folder']}"
    if answer["problem"]:
        yield f"It cannot be used: it {answer['problem']}."
    if answer["source"]:
        yield f"Installed from {answer['source']} ({answer['tier']})."
    yield ""
    yield from answer["body"].splitlines()
    yield ""
    yield f"Files: {', '.join(answer['files'])}"


def _audited(answer: Mapping[str, Any]) -> Iterator[str]:
    for each in answer["skills"]:
        changed = {None: "", False: ", unchanged", True: ", changed since it was installed"}[each["changed"]]
        if each["problem"]:
            yield f"{each['name']}: not valid{changed}: {each['problem']}"
        else:
            yield f"{each['name']}: {each['verdict']}{changed}"
        yield from (f"  {line}" for line in findings(each))


def _stats(answer: Mapping[str, Any]) -> Iterator[str]:
    for each in answer["skills"]:
        if not each["versions"]:
            yield f"{each['name']}: never used"
        for version in each["versions"]:
            outcomes = ", ".join(f"{count} {name}" for name, count in version["outcomes"].items() if count)
            yield (
                f"{each['name']} version {version['version']}: {version['success']:.0%} of the runs succeeded "
                f"({outcomes}), {version['calls']:g} calls and {version['tokens']:g} tokens in the median"
            )


def _log(answer: Mapping[str, Any]) -> Iterator[str]:
    for each in answer["changes"]:
        who = each["by"] or each["author"]
        where = f" in session {each['session']}" if each["session"] else ""
        note = f": {each['note']}" if each["note"] else ""
        yield f"{each['number']}  {moment(each['at'])}  {each['action']} by {who}{where}{note}"


def _diff(answer: Mapping[str, Any]) -> Iterator[str]:
    yield from answer["diff"].splitlines() or ["It changes nothing."]


def _reported(answer: Mapping[str, Any]) -> Iterator[str]:
    for each in answer["stale"]:
        yield f"{each['name']} was not used for {each['days']} days"
    for one, other, share in answer["overlaps"]:
        yield f"{one} and {other} overlap: {share:.0%} of the words of their descriptions are the same"
    if not answer["stale"] and not answer["overlaps"]:
        yield "No skill is stale, and none overlap."


def _consolidated(answer: Mapping[str, Any]) -> Iterator[str]:
    if not answer["skills"]:
        yield "No skills of the agent overlap."
    else:
        names = ", ".join(answer["skills"])
        yield f"{names} overlap. Session {answer['session']} looks after them in the background."


def _done(answer: Mapping[str, Any]) -> Iterator[str]:
    if "enabled" in answer:
        yield f"{answer['name']} is {'enabled' if answer['enabled'] else 'disabled'}."
    elif "pinned" in answer:
        yield f"{answer['name']} is {'pinned' if answer['pinned'] else 'not pinned any more'}."
    elif answer["action"] == "delete":
        yield f"{answer['name']} is removed. `hermes skills revert {answer['name']}` brings it back."
    else:
        yield f"{answer['name']}: {answer['action']}, version {answer['number']}."


_TEXTS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "list": _listed,
    "show": _shown,
    "audit": _audited,
    "stats": _stats,
    "log": _log,
    "diff": _diff,
    "report": _reported,
    "consolidate": _consolidated,
}
