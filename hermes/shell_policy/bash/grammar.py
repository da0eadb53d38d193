"""From the text of a bash command line to its syntax tree.

It follows bash where that decides what runs, and is lenient where bash would only complain. Whatever it cannot follow
raises Unparsable: a line that is not understood is never taken for harmless. Work is bounded by a count of parts and
a depth, both far above what people write.
"""

from __future__ import annotations

import re

from hermes.shell_policy.bash.ansi import decode_ansi
from hermes.shell_policy.bash.syntax import (
    UNKNOWN,
    Arithmetic,
    Assigned,
    Command,
    Compound,
    Function,
    Literal,
    Mark,
    Part,
    Pipeline,
    Redirect,
    Simple,
    Substitution,
    Variable,
    Word,
)

MAX_PARTS = 2_500
MAX_DEPTH = 20

_PLAIN = re.compile(r"[\w./:=+@%^~\]*?\[!#-]+")
_QUOTED = re.compile(r'[^"\\$`\0]+')
_HERE = re.compile(r"[^\\$`\0]+")
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_NAME = re.compile(r"(?a)[A-Za-z_]\w*")
_PARAMETER = re.compile(r"(?a)[A-Za-z_]\w*|\d+|[@*#?$!_-]")
_ASSIGNMENT = re.compile(r"(?a)([A-Za-z_]\w*)(\+?)=")
_SUBSCRIPTED = re.compile(r"(?a)([A-Za-z_]\w*)\[")
_REDIRECT = re.compile(r"(\d+|\{\w+\})?(<<<|<<-|<<|<>|<&|>&|>>|>\||<|>)|(&>>|&>)")
_RESERVED = re.compile(
    r"(if|then|elif|else|fi|while|until|do|done|for|select|case|esac|function|time|coproc|\{|\}|!|\[\[)"
    r"(?=[ \t\n;&|()<>]|\Z)"
)
_OPERATION = re.compile(r":?[-=+?]|%%?|##?|//?|\^\^?|,,?|[:@]")
_SKIPPED = frozenset({"then", "elif", "else", "do", "!", "time", "coproc"})
_CLOSER = {"if": "fi", "while": "done", "until": "done", "for": "done", "select": "done", "{": "}"}
_WORD_ENDS = frozenset(" \t\n;&|<>()")
_BRACKETS = re.compile(r"\([ \t\n]*\)")
_IN = re.compile(r"in(?=[ \t\n;])")
_ESAC = re.compile(r"esac(?=[ \t\n;&|()<>]|\Z)")
_TEST_END = re.compile(r"\]\](?=[ \t\n;&|()<>]|\Z)")
_CASE_END = re.compile(r";;&|;;|;&")
_APPEND = re.compile(r"(\+?)=")
_OPERAND = re.compile(r"[\w./:=+@%^~-]+")
_ANSI_QUOTED = re.compile(r"((?:[^'\\]|\\.)*)'", re.DOTALL)
_TIME_OPTION = re.compile(r"[ \t]+(?:-p|--)(?=[ \t\n])")


class Unparsable(Exception):  # noqa: N818 - a finding about somebody's text, not a fault of ours
    """The text is not a command line that can be followed; the reason is in plain words."""


def parse_list(text: str, depth: int = 0, parts: list[int] | None = None) -> tuple[Pipeline, ...]:
    return BashParser(text, depth, parts if parts is not None else [MAX_PARTS]).whole()


class BashParser:
    def __init__(self, text: str, depth: int, parts_left: list[int]) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._parts_left = parts_left  # shared with the parsers of nested texts
        self._pending: list[tuple[str, bool, bool, list[Word]]] = []  # here-documents whose body is to come

    def whole(self) -> tuple[Pipeline, ...]:
        items = self._list(frozenset())
        if self._pending:
            raise Unparsable("a here-document has no body")
        return items

    # Lists and pipelines

    def _list(self, closers: frozenset[str], *, paren: bool = False, case: bool = False) -> tuple[Pipeline, ...]:
        """Parse the pipelines up to a closer, which is consumed; in a `case` also up to `;;`."""
        self._enter()
        items: list[Pipeline] = []
        after = ";"
        while not self._at_list_end(closers, paren=paren, case=case):
            if self._peek() in ";&" and not self._text.startswith("&>", self._at):
                self._at += 1
                after = ";"
            elif skipped := self._skip_reserved():
                after = "||" if skipped in {"elif", "else", "then", "do"} else after
            else:
                commands = self._pipeline()
                operator = self._operator()
                items.append(Pipeline(commands=commands, after=after, background=operator == "&"))
                after = operator if operator in {"&&", "||"} else ";"
        self._depth -= 1
        return tuple(items)

    def _at_list_end(self, closers: frozenset[str], *, paren: bool, case: bool) -> bool:
        """Return whether the list ends here, and consume the closer unless it belongs to a `case`."""
        self._skip_lines()
        character = self._peek()
        if not character:
            if closers or paren:
                raise Unparsable("it ends in the middle of a command")
            return True
        if character == ")":
            if not paren:
                raise Unparsable("it closes a bracket that was not opened")
            self._at += 1
            return True
        if case and self._text.startswith((";;", ";&"), self._at):
            return True
        reserved = _RESERVED.match(self._text, self._at)
        if reserved is None or reserved[1] not in closers:
            return False
        if not case:
            self._at = reserved.end()
        return True

    def _skip_reserved(self) -> str:
        """Skip a reserved word that only introduces a list and return it; else return nothing."""
        reserved = _RESERVED.match(self._text, self._at)
        if reserved is None:
            return ""
        word = reserved[1]
        if word in _SKIPPED:
            self._skip_word(reserved)
            return word
        if word in {"fi", "done", "esac", "}"}:
            raise Unparsable(f"there is a {word!r} that closes nothing")
        return ""

    def _pipeline(self) -> tuple[Command, ...]:
        commands = [self._command()]
        while True:
            self._skip_blanks()
            if self._peek() != "|" or self._text.startswith("||", self._at):
                return tuple(commands)
            self._at += 2 if self._text.startswith("|&", self._at) else 1
            self._skip_lines()
            while (reserved := _RESERVED.match(self._text, self._at)) and reserved[1] in _SKIPPED:
                self._skip_word(reserved)
                self._skip_lines()
            if not self._peek():
                raise Unparsable("it ends after a pipe")
            commands.append(self._command())

    def _skip_word(self, reserved: re.Match[str]) -> None:
        self._at = reserved.end()
        while reserved[1] == "time" and (option := _TIME_OPTION.match(self._text, self._at)):
            self._at = option.end()

    def _operator(self) -> str:
        self._skip_blanks()
        for operator in ("&&", "||"):
            if self._text.startswith(operator, self._at):
                self._at += 2
                return operator
        if self._peek() == "&":
            self._at += 1
            return "&"
        return self._peek()

    # Commands

    def _command(self) -> Command:
        if self._peek() == "(":
            return self._bracketed()
        reserved = _RESERVED.match(self._text, self._at)
        if reserved is None:
            return self._simple()
        word = reserved[1]
        self._at = reserved.end()
        match word:
            case "{" | "if" | "while" | "until":
                body = self._list(frozenset({_CLOSER[word]}))
                return Compound(kind=word, body=body, redirects=self._redirects())
            case "for" | "select":
                return self._loop(word)
            case "case":
                return self._case()
            case "[[":
                return self._test()
            case "function":
                self._skip_blanks()
                name = self._word()
                self._skip_blanks()
                if found := _BRACKETS.match(self._text, self._at):
                    self._at = found.end()
                return self._function(name)
        raise Unparsable(f"there is a {word!r} in an odd place")

    def _bracketed(self) -> Command:
        if self._text.startswith("((", self._at):
            start = self._at
            self._at += 2
            operand = self._arithmetic()
            if operand is not None:
                return Compound(kind="((", body=(), words=(operand,), redirects=self._redirects())
            self._at = start
        self._at += 1
        body = self._list(frozenset(), paren=True)
        return Compound(kind="(", body=body, redirects=self._redirects())

    def _loop(self, kind: str) -> Command:
        self._skip_blanks()
        words: list[Word] = []
        variable = ""
        if self._text.startswith("((", self._at):
            self._at += 2
            operand = self._arithmetic()
            if operand is None:
                raise Unparsable("a loop's arithmetic has no end")
            words.append(operand)
        else:
            name = _NAME.match(self._text, self._at)
            if name is None:
                raise Unparsable("a loop has no variable")
            variable, self._at = name[0], name.end()
            self._skip_lines()
            if _IN.match(self._text, self._at):
                self._at += 2
                words.extend(self._words())
            else:
                words.append((Variable(name="@", quoted=True),))
        body = self._list(frozenset({"done"}))
        return Compound(kind=kind, body=body, words=tuple(words), variable=variable, redirects=self._redirects())

    def _case(self) -> Command:
        self._skip_blanks()
        words = [self._word()]
        self._skip_lines()
        if not _IN.match(self._text, self._at):
            raise Unparsable("a case has no 'in'")
        self._at += 2
        body: list[Pipeline] = []
        while True:
            self._skip_lines()
            if found := _ESAC.match(self._text, self._at):
                self._at = found.end()
                return Compound(kind="case", body=tuple(body), words=tuple(words), redirects=self._redirects())
            if self._peek() == "(":
                self._at += 1
            while self._peek() != ")":
                self._skip_lines()
                if not self._peek():
                    raise Unparsable("a case has no end")
                if self._peek() == "|":
                    self._at += 1
                elif self._peek() != ")":
                    words.append(self._word())
            self._at += 1
            body.extend(self._list(frozenset({"esac"}), case=True))
            if found := _CASE_END.match(self._text, self._at):
                self._at = found.end()

    def _test(self) -> Command:
        """`[[ ... ]]`: of interest are only the substitutions in it."""
        words: list[Word] = []
        while True:
            self._skip_lines()
            if found := _TEST_END.match(self._text, self._at):
                self._at = found.end()
                return Compound(kind="[[", body=(), words=tuple(words), redirects=self._redirects())
            if not self._peek():
                raise Unparsable("a [[ has no end")
            if self._peek() in "()<>&|;" and not self._text.startswith(("<(", ">("), self._at):
                self._at += 1
            else:
                words.append(self._word())

    def _function(self, name: Word) -> Command:
        self._enter()
        self._skip_lines()
        if not self._peek():
            raise Unparsable("a function has no body")
        text = "".join(part.text for part in name if isinstance(part, Literal | Mark))
        made = Function(name=text, body=self._command())
        self._depth -= 1
        return made

    def _simple(self) -> Command:
        start = self._at
        assigned: list[Assigned] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._skip_blanks()
            if self._redirect(redirects):
                continue
            character = self._peek()
            if not character or character in "\n;&|)" or (character == "#" and self._at_word_start()):
                break
            if character == "(":
                if (
                    len(words) == 1
                    and not assigned
                    and not redirects
                    and (brackets := _BRACKETS.match(self._text, self._at))
                ):
                    self._at = brackets.end()
                    return self._function(words[0])
                raise Unparsable("there is a bracket in an odd place")
            if not words and (made := self._assignment()):
                assigned.append(made)
                continue
            words.append(self._word())
        self._parts_left[0] -= 3  # a command costs more than its words
        if self._at == start:
            raise Unparsable("there is an operator without a command")
        return Simple(
            assigned=tuple(assigned),
            words=tuple(words),
            redirects=tuple(redirects),
            written=self._text[start : self._at].strip(),
        )

    def _assignment(self) -> Assigned | None:
        start = self._at
        subscript: Word | None = None
        if found := _SUBSCRIPTED.match(self._text, self._at):
            self._at = found.end()
            subscript = self._until("]")
            equals = _APPEND.match(self._text, self._at)
            if equals is None:
                self._at = start
                return None
            name, append, self._at = found[1], bool(equals[1]), equals.end()
        elif found := _ASSIGNMENT.match(self._text, self._at):
            name, append, self._at = found[1], bool(found[2]), found.end()
        else:
            return None
        if self._peek() == "(":
            self._at += 1
            return Assigned(name=name, words=tuple(self._array()), append=append, subscript=subscript)
        value = self._word() if self._peek() and self._peek() not in _WORD_ENDS else self._maybe_process()
        return Assigned(name=name, words=(value,), append=append, subscript=subscript)

    def _maybe_process(self) -> Word:
        return self._word() if self._text.startswith(("<(", ">("), self._at) else ()

    def _array(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._skip_lines()
            if not self._peek():
                raise Unparsable("an array has no end")
            if self._peek() == ")":
                self._at += 1
                return words
            if self._peek() in _WORD_ENDS and not self._text.startswith(("<(", ">("), self._at):
                raise Unparsable("there is an operator in an array")
            words.append(self._word())

    def _words(self) -> list[Word]:
        """Up to the end of the line or a semicolon."""
        words: list[Word] = []
        while True:
            self._skip_blanks()
            if not self._peek() or self._peek() in "\n;":
                return words
            if self._peek() in "&|()" or (self._peek() in "<>" and self._text[self._at + 1 : self._at + 2] != "("):
                raise Unparsable("there is an operator in a loop's list")
            words.append(self._word())

    # Redirections

    def _redirects(self) -> tuple[Redirect, ...]:
        redirects: list[Redirect] = []
        self._skip_blanks()
        while self._redirect(redirects):
            self._skip_blanks()
        return tuple(redirects)

    def _redirect(self, redirects: list[Redirect]) -> bool:
        found = _REDIRECT.match(self._text, self._at)
        if found is None:
            return False
        operator = found[2] or found[3]
        if operator in {"<", ">"} and not found[1] and self._text.startswith("(", found.end()):
            return False  # a process substitution is a word
        self._at = found.end()
        self._skip_blanks()
        if not self._peek() or (self._peek() in _WORD_ENDS and not self._maybe_here()):
            raise Unparsable("a redirection has no target")
        start = self._at
        target = self._word()
        if operator in {"<<", "<<-"}:
            delimiter = "".join(part.text for part in target if isinstance(part, Literal | Mark))
            quoted = any(mark in self._text[start : self._at] for mark in "'\"\\")
            if not quoted and any(not isinstance(part, Literal | Mark) for part in target):
                raise Unparsable("a here-document's end mark is not plain")
            here: list[Word] = []
            self._pending.append((delimiter, quoted, operator == "<<-", here))
            redirects.append(Redirect(operator=operator, target=(), descriptor=found[1] or "", here_document=here))
        else:
            redirects.append(Redirect(operator=operator, target=target, descriptor=found[1] or ""))
        if operator.startswith("<<") and operator != "<<<" and self._text.find("\n", self._at) < 0:
            raise Unparsable("a here-document has no body")
        return True

    def _maybe_here(self) -> bool:
        return self._text.startswith(("<(", ">("), self._at)

    def _read_here_documents(self) -> None:
        """Called right after a line's end."""
        pending, self._pending = self._pending, []
        for delimiter, quoted, strip, here in pending:
            lines: list[str] = []
            while True:
                if self._at >= len(self._text):
                    raise Unparsable(f"the here-document up to {delimiter!r} has no end")
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = min(end + 1, len(self._text))
                line = line.lstrip("\t") if strip else line
                if line == delimiter:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            here.append(self._here_document(body, quoted=quoted))

    def _here_document(self, body: str, *, quoted: bool) -> Word:
        if quoted:
            return (Literal(text=body, quoted=True),)
        inner = BashParser(body, self._depth, self._parts_left)
        return inner._double_quoted(_HERE, "")

    # Words

    def _word(self) -> Word:
        parts: list[Part] = []
        text, start = self._text, self._at
        while self._at < len(text):
            if plain := _PLAIN.match(text, self._at):
                self._at = plain.end()
                self._add(parts, Literal(text=plain[0]))
                continue
            character = text[self._at]
            if character in _WORD_ENDS:
                if character in "<>" and text.startswith("(", self._at + 1):
                    self._at += 2
                    body = self._list(frozenset(), paren=True)
                    self._add(parts, Substitution(body=body, process=True))
                    continue
                break
            self._at += 1
            self._piece(parts, character)
        if self._at == start:
            raise Unparsable("there is an operator where a word should be")  # whoever loops over words would not end
        return tuple(parts)

    def _piece(self, parts: list[Part], character: str) -> None:
        """One part that begins with a special character, which was consumed."""
        match character:
            case "'":
                self._add(parts, Literal(text=self._up_to("'"), quoted=True))
            case '"':
                self._add(parts, Literal(text="", quoted=True))
                parts.extend(self._double_quoted(_QUOTED, '"'))
            case "\\":
                following = self._text[self._at : self._at + 1]
                self._at += 1
                if following != "\n":
                    self._add(parts, Literal(text=following or "\\", quoted=True))
            case "$":
                self._add(parts, self._dollar(quoted=False))
            case "`":
                self._add(parts, self._backticks(quoted=False))
            case "{" | "}" | ",":
                self._add(parts, Mark(text=character))
            case "\0":
                self._add(parts, Variable(name=UNKNOWN))
            case _:
                self._add(parts, Literal(text=character))

    def _double_quoted(self, plain: re.Pattern[str], end: str) -> Word:
        parts: list[Part] = []
        while True:
            if found := plain.match(self._text, self._at):
                self._at = found.end()
                self._add(parts, Literal(text=found[0], quoted=True))
            character = self._peek()
            self._at += 1
            if character == end:  # at the end of a here-document both are empty
                return tuple(parts)
            match character:
                case "":
                    raise Unparsable("a quote has no end")
                case "\\":
                    following = self._peek()
                    self._at += 1
                    if following not in '$`"\\\n':
                        self._add(parts, Literal(text="\\" + following, quoted=True))
                    elif following != "\n":
                        self._add(parts, Literal(text=following or "\\", quoted=True))
                case "$":
                    self._add(parts, self._dollar(quoted=True))
                case "`":
                    self._add(parts, self._backticks(quoted=True))
                case _:
                    self._add(parts, Variable(name=UNKNOWN, quoted=True))

    def _dollar(self, *, quoted: bool) -> Part:
        text = self._text
        character = self._peek()
        if character == "'" and not quoted:
            self._at += 1
            return Literal(text=decode_ansi(self._ansi_quoted()), quoted=True)
        if character == '"' and not quoted:
            return Literal(text="", quoted=True)  # a translated string: the quotes come next
        if character == "(":
            return self._substitution(quoted=quoted)
        if character == "{":
            self._at += 1
            return self._braced(quoted=quoted)
        if character == "[":
            self._at += 1
            return Arithmetic(operand=self._until("]"))
        if name := _PARAMETER.match(text, self._at):
            one = name[0][:1] if name[0][0].isdigit() else name[0]
            self._at += len(one)
            return Variable(name=one, quoted=quoted)
        return Literal(text="$", quoted=quoted)

    def _substitution(self, *, quoted: bool) -> Part:
        start = self._at
        if self._text.startswith("((", self._at):
            self._at += 2
            operand = self._arithmetic()
            if operand is not None:
                return Arithmetic(operand=operand)
            self._at = start
        self._at += 1
        return Substitution(body=self._list(frozenset(), paren=True), quoted=quoted)

    def _backticks(self, *, quoted: bool) -> Part:
        characters: list[str] = []
        escapes = '$`\\"' if quoted else "$`\\"
        while (character := self._peek()) != "`":
            if not character:
                raise Unparsable("a backtick has no end")
            following = self._text[self._at + 1 : self._at + 2]
            if character == "\\" and following and following in escapes:
                character = following
                self._at += 1
            elif character == "\\" and following:
                character += following
                self._at += 1
            characters.append(character)
            self._at += 1
        self._at += 1
        inner = BashParser("".join(characters), self._depth + 1, self._parts_left)
        return Substitution(body=inner.whole(), quoted=quoted)

    def _braced(self, *, quoted: bool) -> Part:
        text = self._text
        if self._peek() in {" ", "\n", "\t", "|"}:  # runs in this very shell
            self._at += 1
            return Substitution(body=self._list(frozenset({"}"})), quoted=quoted)
        prefix = ""
        if self._peek() in {"!", "#"} and text[self._at + 1 : self._at + 2] not in {"}", ""}:
            prefix = self._peek()
            self._at += 1
        name = _PARAMETER.match(text, self._at)
        if name is None:
            raise Unparsable("a ${ has no name")
        self._at = name.end()
        subscript: Word | None = None
        if self._peek() == "[":
            self._at += 1
            subscript = self._until("]")
        operation = prefix
        if found := _OPERATION.match(text, self._at):
            operation += found[0]
            self._at = found.end()
        operand = self._until("}", quoted=quoted)
        return Variable(name=name[0], operation=operation, operand=operand, subscript=subscript, quoted=quoted)

    def _until(self, end: str, *, quoted: bool = False) -> Word:
        """The parts up to a closing character, which is consumed; blanks and operators mean nothing in there."""
        self._enter()
        parts: list[Part] = []
        while (character := self._peek()) != end:
            if not character:
                raise Unparsable(f"there is no closing {end!r}")
            plain = _OPERAND.match(self._text, self._at)
            if plain:
                self._at = plain.end()
                self._add(parts, Literal(text=plain[0]))
                continue
            self._at += 1
            if character == "'" and quoted:
                self._add(parts, Literal(text=character))
            else:
                self._piece(parts, character)
        self._at += 1
        self._depth -= 1
        return tuple(parts)

    def _arithmetic(self) -> Word | None:
        """The parts up to `))`; nothing if the brackets show that it is no arithmetic but a subshell in another."""
        self._enter()
        parts: list[Part] = []
        open_brackets = 0
        while character := self._peek():
            self._at += 1
            if character == "(":
                open_brackets += 1
            elif character == ")" and open_brackets:
                open_brackets -= 1
            elif character == ")":
                self._depth -= 1
                if self._peek() != ")":
                    return None
                self._at += 1
                return tuple(parts)
            else:
                self._piece(parts, character)
        raise Unparsable("a (( has no end")

    # Characters

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _at_word_start(self) -> bool:
        return self._at == 0 or self._text[self._at - 1] in _WORD_ENDS

    def _up_to(self, end: str) -> str:
        found = self._text.find(end, self._at)
        if found < 0:
            raise Unparsable("a quote has no end")
        text, self._at = self._text[self._at : found], found + 1
        return text

    def _ansi_quoted(self) -> str:
        found = _ANSI_QUOTED.match(self._text, self._at)
        if found is None:
            raise Unparsable("a quote has no end")
        self._at = found.end()
        return found[1]

    def _skip_blanks(self) -> None:
        if found := _BLANK.match(self._text, self._at):
            self._at = found.end()

    def _skip_lines(self) -> None:
        while True:
            self._skip_blanks()
            character = self._peek()
            if character == "#" and self._at_word_start():
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif character == "\n":
                self._at += 1
                self._read_here_documents()
            else:
                return

    def _add(self, parts: list[Part], part: Part) -> None:
        self._parts_left[0] -= 1
        if self._parts_left[0] < 0:
            raise Unparsable("it is too long to be checked")
        parts.append(part)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unparsable("it is nested too deeply")
