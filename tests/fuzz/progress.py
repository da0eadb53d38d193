"""Progress of a run: counts of the fuzzer's report, read while it is written. A cut-off run is counted, too."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_LOOK_S = 1.0
_PRINT_S = 15.0


class Tally:
    """Cases, findings and answers by operation."""

    def __init__(self) -> None:
        self.cases = 0
        self.findings = 0
        self.phase = ""
        self.statuses: defaultdict[str, Counter[int]] = defaultdict(Counter)

    def add(self, event: dict[str, Any]) -> None:
        finished = event.get("ScenarioFinished")
        if finished is None:
            return
        recorder = {"cases": {}, "checks": {}, "interactions": {}, **finished["recorder"]}
        self.phase = finished["phase"]
        self.cases += len(recorder["cases"])
        self.findings += sum(
            check["status"] == "failure" for checks in recorder["checks"].values() for check in checks
        )
        for case, interaction in recorder["interactions"].items():
            answer = interaction.get("response")
            if answer is not None and case in recorder["cases"]:
                value = recorder["cases"][case]["value"]
                self.statuses[f"{value['method']} {value['path']}"][answer["status_code"]] += 1

    def unreached(self, document: dict[str, Any]) -> list[str]:
        """Return the operations of the document that were tried and of which no request succeeded."""
        declared = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
        tried = [(name, seen) for name, seen in self.statuses.items() if name in declared]
        return sorted(name for name, seen in tried if not any(200 <= each < 300 for each in seen))

    def line(self) -> str:
        return f"{self.cases} cases, {self.findings} failed checks ({self.phase})"


class Progress:
    """Follows a report in a thread, and prints a line every few seconds."""

    def __init__(self, report: Path, say: Callable[[str], None]) -> None:
        self._report = report
        self._say = say
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="progress")
        self.tally = Tally()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        rest, position, said_at = b"", 0, time.monotonic()
        while True:
            last = self._over.wait(_LOOK_S)
            if self._report.exists():
                with self._report.open("rb") as file:
                    file.seek(position)
                    lines = (rest + file.read()).split(b"\n")
                    position, rest = file.tell(), lines.pop()
                for line in lines:
                    self.tally.add(json.loads(line))
            if last:
                return
            if time.monotonic() - said_at >= _PRINT_S:
                said_at = time.monotonic()
                self._say(f"fuzz: {self.tally.line()}")
