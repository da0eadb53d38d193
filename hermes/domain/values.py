"""`dataclass` for frozen values, at a fraction of the standard one's price when a module is imported.

A start is mostly imports, and the standard decorator compiles six functions for each of our classes: a fifth of the
time until the daemon is ready. This one compiles one, when the first instance is made, and they share the rest. To a
type checker, to `dataclasses.replace` and to `fields` it is the standard one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool) -> Callable[[type], type]:
        assert frozen, "for others there is the standard dataclass"
        assert slots
        assert kw_only
        return _value


__all__ = ["dataclass"]


def _value(cls: type) -> Any:
    cls.__doc__ = cls.__doc__ or cls.__name__  # or the signature is looked up and written there, at half the price
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    fields = dataclasses.fields(made)
    names = [field.name for field in fields]
    made.__init__ = _compiled_when_called(made, fields)
    made._values = staticmethod(attrgetter(*names) if names else lambda _: ())  # noqa: SLF001 - being made here
    made._shown = tuple(field.name for field in fields if field.repr)  # noqa: SLF001
    made.__repr__, made.__eq__, made.__hash__ = _repr, _eq, _hash
    made.__setattr__ = made.__delattr__ = _refuse
    return made


def _compiled_when_called(cls: Any, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """Most of the values that a start imports are not made by it."""

    def initialise(self: object, **values: object) -> None:
        cls.__init__ = _initialiser(cls, fields)
        cls.__init__(self, **values)

    return initialise


def _initialiser(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    names: dict[str, Any] = {}
    arguments, lines = ["self", "*"] if fields else ["self"], []
    for field in fields:
        names[f"_set_{field.name}"] = getattr(cls, field.name).__set__  # of the slot: past the refusal below
        value = field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{field.name}"] = field.default_factory
            value = f"_make_{field.name}() if {field.name} is None else {field.name}"
            arguments.append(f"{field.name}=None")
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{field.name}"] = field.default
            arguments.append(f"{field.name}=_default_{field.name}")
        else:
            arguments.append(field.name)
        lines.append(f" _set_{field.name}(self, {value})")
    source = "\n".join([f"def __init__({', '.join(arguments)}):", *(lines or [" pass"])])
    exec(source, names)  # noqa: S102 - as dataclasses does; made of our own classes' field names
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _repr(self: Any) -> str:
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._shown)})"


def _eq(self: Any, other: Any) -> Any:
    return self._values(self) == other._values(other) if type(self) is type(other) else NotImplemented  # noqa: SLF001


def _hash(self: Any) -> int:
    return hash(self._values(self))


def _refuse(self: Any, name: str, *_: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot change field {name!r} of {type(self).__qualname__}: it is a value")
