"""Modules that a library imports but seldom uses: imported with their first use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


@contextmanager
def imported_late(*names: str) -> Iterator[None]:
    """Give those that import these modules meanwhile a stand-in. Modules that are there already stay.

    It helps with `import NAME`. An import of something from a stand-in imports its module at once.
    """
    stand_ins = {name: _StandIn(name) for name in names if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for stand_in in stand_ins.values():
            stand_in._give_way()  # noqa: SLF001


class _StandIn(ModuleType):
    """Module that finds its attributes in the real one."""

    def __getattr__(self, name: str) -> Any:
        self._give_way()
        return getattr(import_module(self.__name__), name)

    def _give_way(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
