"""Scan of a text for known prompt injection patterns, before it becomes part of a prompt. Pure.

It finds hidden characters, hidden markup, commands that exfiltrate secrets and common phrases. It does not find every
attack: a text that passes is still not trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# Joiners are legitimate in emoji and several scripts, so they count only beside ASCII. Tag characters count only
# outside flags. Variation selectors count only in sequences, which can carry hidden text.
_ALWAYS_HIDDEN = "[\u200b\u2060-\u2064\u180e\ufeff]"
_BIDI = "[\u202a-\u202e\u2066-\u2069]"
_JOINER = "(?<=[ -~])[\u200c\u200d]|[\u200c\u200d](?=[ -~])"
_TAG = "[\U000e0000-\U000e007f]"
_FLAG = "\U0001f3f4[\U000e0030-\U000e007a]{2,6}\U000e007f"
_SELECTORS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3}"

_TAKEOVERS = (
    (
        r"""(?<!do\ not\ )(?<!don't\ )(?<!never\ )
            \b(ignore|disregard|forget|override|bypass)\S{0,2}(\ \S+){0,4}?
            \ (your|previous|prior|above|earlier|preceding|foregoing|system|safety)\S{0,2}(\ \S+){0,2}?
            \ (instruction|prompt|rule|guideline|directive|restriction|context)s?\b""",
        "it asks to ignore earlier instructions",
    ),
    (
        r"""\b(ignore|disregard|forget)\ (everything|anything|all)(\ \S+){0,3}?\ (above|before|earlier|told)\b
            |\b(ignore|disregard|forget)\ (all|any)\ (of\ )?((the|these|other)\ )?instructions\b""",
        "it asks to ignore earlier instructions",
    ),
    (
        r"""\byou\ are\ (now|no\ longer)\ (\S+\ ){0,3}?
            (dan|jailbroken|unrestricted|unfiltered|uncensored|developer\ mode|bound\ by)\b
            |\b(act|behave|respond)\ as\ (if|though)\ you\ (have|had)\ no\ (\S+\ )?(restriction|rule|limit|filter)""",
        "it asks to drop the assistant's rules",
    ),
    (
        r"""\b(do\ not|don't|never)\ (tell|inform|alert|notify)\ (the\ )?(user|person|human|owner|anyone)
            (\.|,|$|\ (about|that|of|what|when|why|you)\b)
            |\b(without|avoid)\ (telling|informing|alerting)\ (the\ )?(user|person|human|owner)\b
            |\bdo\ not\ let\ (the\ )?(user|person|human)\ know\b""",
        "it asks to hide something from the person",
    ),
    (
        r"""\b(reveal|print|show|output|repeat|leak|send)\ (\S+\ ){0,3}?
            (your|the)\ (\S+\ )?(system\ prompt|initial\ instructions|hidden\ instructions)""",
        "it asks for the assistant's instructions",
    ),
    (
        r"<\|(im_start|im_end|system|endoftext|start_header_id)\|>|\[/?INST\]|<</?SYS>>",
        "it contains control tokens of models",
    ),
)
_ORDERS_IN_COMMENT = r"""\byou\ (must|should|shall|will|are|need)\b
    |\b(ai|llm|assistant|agent|model|claude|hermes|gpt)s?\b
     [^.]{0,60}\b(must|should|shall|run|execute|send|fetch|ignore)\b
    |\b(ignore|disregard|forget|override)\ (all|any|the|your|previous|prior|above|everything)\b
    |\bsystem\ prompt\b|\bsecretly\b|\bdo\ not\ (tell|mention|reveal)\b|\b(curl|wget)\b"""
_INVISIBLE_MARKUP = r"""<\w[^<>]{0,300}style\s*=[^<>]{0,300}
    (display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0|opacity\s*:\s*0\b)"""
_PRIVATE = r"""(\$\{?\w*(key|token|secret|passw|credential)\w*|\.env\b|\.ssh/|id_(rsa|ed25519|ecdsa)\b
    |\.aws/|\.netrc\b|\.git-credentials\b|\.kube/config\b|/etc/(passwd|shadow)\b)"""
_SEND = r"(curl|wget|nc|ncat|telnet)\b"
_EXFILTRATION = rf"""\b{_SEND}\ [^|]{{0,400}}?{_PRIVATE}
    |\b(cat|base64|tar|grep|xxd)\ [^|]{{0,200}}{_PRIVATE}[^|]{{0,100}}\|([^|]{{0,100}}\|)?\s*{_SEND}
    |\b(env|printenv)\s*\|([^|]{{0,100}}\|)?\s*{_SEND}"""


def suspicion(text: str) -> str:
    """Return why this text must not reach a model as instructions; empty if nothing was found."""
    if found := _hidden_character(text):
        return found
    import unicodedata  # noqa: PLC0415 - its tables take 0.1 MB

    plain = unicodedata.normalize("NFKC", text)
    if any(_search(_ORDERS_IN_COMMENT, _joined(comment)) for comment in _comments(plain)):
        return "a hidden HTML comment contains instructions"
    if _search(_INVISIBLE_MARKUP, plain):
        return "it contains markup that hides text"
    if any(_search(_EXFILTRATION, line) for line in plain.replace("\\\n", " ").splitlines()):
        return "it contains a command that sends secrets to another machine"
    joined = _joined(plain)
    return next((reason for pattern, reason in _TAKEOVERS if _search(pattern, joined)), "")


def _hidden_character(text: str) -> str:
    for pattern, what in (
        (_BIDI, "characters that change the direction of the text"),
        (_ALWAYS_HIDDEN, "invisible characters"),
        (_JOINER, "invisible characters"),
        (_SELECTORS, "invisible characters"),
    ):
        if found := re.search(pattern, text):
            return f"it contains {what} (U+{ord(found[0][0]):04X})"
    if found := re.search(_TAG, re.sub(_FLAG, "", text)):
        return f"it contains invisible characters (U+{ord(found[0]):04X})"
    return "it is not text" if "\0" in text else ""


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.IGNORECASE | re.VERBOSE)  # compiled at first use, not at import


def _comments(text: str) -> Iterable[str]:
    """Yield the content of HTML comments; an unclosed one extends to the end."""
    return (rest.partition("-->")[0] for rest in text.split("<!--")[1:])


def _joined(text: str) -> str:
    """Return the text on one line, without emphasis marks between words."""
    plain = re.sub(r"[*`\"~]|(?<!\w)_|_(?!\w)", "", text.replace("\u2019", "'"))
    return " ".join(plain.split())
