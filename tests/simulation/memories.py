"""Memory in the simulation: writes for several people, edits of files by hand, faults, and what must be there after.

The memory service and the journal are the real ones. The files are played: they outlive each daemon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from loguru import logger

from hermes.app.actor_system import ActorSystem
from hermes.domain.change import ChangeAuthor
from hermes.domain.errors import HermesError
from hermes.domain.memory.edit import read_edit
from hermes.domain.memory.note_file import entries_of
from hermes.domain.memory.reconcile import FoundFile, text_after
from hermes.domain.memory.scope import OWNER_SCOPE, MemoryScope, MemoryTarget, parse_scope
from hermes.domain.values import dataclass
from hermes.ports.memory import ChangeOrigin
from hermes.services.memory.memory_service import MemoryService, MemorySettings
from hermes.services.memory.note_files import NoteFiles
from tests.simulation.daemon import SimulatedDaemon
from tests.simulation.disk import Disk
from tests.simulation.outside import Outside
from tests.simulation.request import Request
from tests.simulation.run import LOOK_EVERY_S, Accidents, Simulation
from tests.simulation.virtual_time import VirtualReaders

T = TypeVar("T")
SCOPES: Final = (OWNER_SCOPE, parse_scope("telegram:1"), parse_scope("telegram:2"))
ROOM: Final = MemorySettings(memory_char_limit=100_000, user_char_limit=100_000)
SETTLED_S: Final = 600.0


class PlayedFiles(NoteFiles):
    """Files that a kill leaves as they are, with a moment to die before and after each replacement."""

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._found: dict[Path, FoundFile] = {}

    def find(self, path: Path) -> FoundFile:
        return self._found.get(path, FoundFile(text=None))

    def replace(self, path: Path, text: str, *, expected: str | None) -> bool:
        self._outside.moment("after an effect")
        if self._outside.happens(0.05):
            raise OSError(5, "simulated")
        if self.find(path).text != expected:
            return False
        self.save(path, text)
        self._outside.moment("after an effect")
        return True

    def save(self, path: Path, text: str) -> None:
        self._found[path] = FoundFile(text=text, modified_at=self._outside.wall())


class Threads(VirtualReaders):
    """Threads of the default pool: what they raise arrives where it is awaited."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        def attempt() -> T | HermesError | OSError:
            try:
                return fn(*args, **kwargs)
            except (HermesError, OSError) as error:
                return error

        answer: Future[T] = Future()

        def pass_on(done: Future[T | HermesError | OSError]) -> None:
            value = done.result()
            if isinstance(value, HermesError | OSError):
                answer.set_exception(value)
            else:
                answer.set_result(value)

        def pass_on_if_awaited(done: Future[T | HermesError | OSError]) -> None:
            if not answer.cancelled():
                pass_on(done)

        super().submit(attempt).add_done_callback(pass_on_if_awaited)
        return answer


class RememberingDaemon(SimulatedDaemon):
    files: PlayedFiles
    memories: MemoryService

    def _prepare(self, system: ActorSystem) -> None:
        threads = Threads(loop=self.loop, delay=self._outside.disk.delay_s, during=lambda _: None)
        self.loop._default_executor = threads  # type: ignore[attr-defined]  # the setter wants real threads
        self.memories = MemoryService(
            journal=self.journal,
            directory=Path("/memories"),
            clock=self._outside.wall,
            settings=ROOM,
            files=self.files,
        )


class MemorySimulation(Simulation):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, Disk)
        self.files = PlayedFiles(self.outside)
        self.chatters = []
        self.expected: Counter[tuple[str, MemoryTarget, str]] = Counter()
        self._saves = 0  # that are still to come
        self._open: Counter[Path] = Counter()  # calls that were not answered yet, by file

    def make_daemon(self) -> SimulatedDaemon:
        daemon = RememberingDaemon(self.outside, self.resets, self.platform, self.machine, self._on_stopped)
        daemon.files = self.files
        return daemon

    def run(self) -> None:
        outside, chance = self.outside, self.outside.chance
        self.start()
        for number in range(chance.randint(10, 40)):
            scope, target = chance.choice(SCOPES), chance.choice(tuple(MemoryTarget))
            act = self._save if chance.random() < 0.2 else self._tell
            self._saves += act == self._save
            outside.later(chance.uniform(0, 90), act, scope, target, f"{scope.text} fact {number}")
        Accidents(self).begin()
        outside.run_until(100)
        self._calm_down()
        deadline = outside.now + SETTLED_S
        while outside.now < deadline and (self._open.total() or self._saves or self.town.waiting):
            outside.run_until(outside.now + LOOK_EVERY_S)
        for scope in SCOPES:
            self._tell(scope, MemoryTarget.MEMORY, f"{scope.text} last")
            self._tell(scope, MemoryTarget.USER, f"{scope.text} last")
        outside.run_until(outside.now + SETTLED_S)
        self._stop_for_good()

    def _tell(self, scope: MemoryScope, target: MemoryTarget, text: str) -> None:
        """Let the agent write an entry. The same call comes again until it is answered."""
        self.expected[scope.text, target, text] += 1
        path = _path(scope, target)
        self._open[path] += 1
        self._ask(path, partial(_add, scope, target, text))

    def _ask(self, path: Path, work: Any) -> None:
        def on(request: Request, what: str, _value: Any) -> None:
            if request.over and what == "done":
                self._open[path] -= 1
            elif request.over:
                self.outside.later(1.0, self._ask, path, work)

        self.town.ask(work, on)

    def _save(self, scope: MemoryScope, target: MemoryTarget, text: str) -> None:
        """Add an entry with an editor, when no call is on its way: a kill in just that moment can drop one."""
        path = _path(scope, target)
        if self._open[path]:
            self.outside.later(2.0, self._save, scope, target, text)
            return
        self._saves -= 1
        before = self.files.find(path).text
        self.files.save(path, f"{before}§\n{text}\n" if before else f"{text}\n")
        self.expected[scope.text, target, text] += 1
        self.outside.note(f"saved {text}")

    # ------------------------------------------------------------ what must be true

    def violations(self) -> Iterator[str]:
        if left := self._open.total():
            yield f"{left} writes were never answered"
        found: Counter[tuple[str, MemoryTarget, str]] = Counter()
        for scope in SCOPES:
            for target in MemoryTarget:
                text = self.files.find(_path(scope, target)).text or ""
                found.update((scope.text, target, each) for each in entries_of(text))
                changes = self.outside.disk.changes(scope.subject(target))
                if (text_after(changes[-1]) if changes else "") != text:
                    yield f"log and file of {scope.text} {target} differ"
        for missing in self.expected - found:
            yield f"{missing} was lost"
        for extra in found - self.expected:
            yield f"{extra} is there without reason, or twice"


def _path(scope: MemoryScope, target: MemoryTarget) -> Path:
    return Path("/memories") / scope.folder / target.file_name


async def _add(scope: MemoryScope, target: MemoryTarget, text: str, daemon: SimulatedDaemon, _: Request) -> None:
    assert isinstance(daemon, RememberingDaemon)
    edits = [read_edit({"action": "add", "content": text})]
    origin = ChangeOrigin(author=ChangeAuthor.AGENT, operation=f"call {text}", by="cli", session="s", turn="t")
    await daemon.memories.change(scope, target, edits, origin)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryVerdict:
    violations: tuple[str, ...]
    trace: tuple[str, ...]
    writes: int


def run_memories(seed: int) -> MemoryVerdict:
    logger.disable("hermes")
    simulation = MemorySimulation(seed)
    try:
        simulation.run()
        found = tuple(simulation.violations())
    finally:
        logger.enable("hermes")
    trace = tuple(simulation.outside.trace)
    return MemoryVerdict(violations=found, trace=trace, writes=simulation.expected.total())
