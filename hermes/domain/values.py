"""`dataclass` for frozen values that costs a tenth of the standard decorator at import time.

The standard decorator compiles six functions for each class. With our 400 classes that doubles the time until the
daemon is ready (docs/decisions/0023-value-classes.md). This one compiles `__init__` alone, when the first
instance is made; the other methods are shared. For a type checker, `dataclasses.fields`, `copy` and
`pickle` it behaves like the standard one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

V = TypeVar("V")
_new = object.__new__

if TYPE_CHECKING:
    from dataclasses import dataclass, replace

    def amend(value: V, /, **changes: object) -> V: ...

else:

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool) -> Callable[[type], type]:
        assert frozen, "for others there is the standard dataclass"
        assert slots
        assert kw_only
        return _value

    def replace(value: Any, /, **changes: object) -> Any:
        """Return a copy with these fields changed. More than twice as fast as `dataclasses.replace`."""
        cls = type(value)
        try:
            copy_fields = cls._copy
        except AttributeError:  # an ordinary dataclass
            return dataclasses.replace(value, **changes)
        copy = _new(cls)
        copy_fields(copy, value)
        setters = cls._setters
        for name, new in changes.items():
            try:
                setters[name](copy, new)
            except KeyError:
                raise TypeError(f"{cls.__qualname__} has no field {name!r}") from None
        return copy

    def amend(value: V, /, **changes: object) -> V:
        """Change fields of a copy that `replace` has just made, and that nobody else has. It saves a second copy."""
        setters = type(value)._setters  # noqa: SLF001 - made above
        for name, new in changes.items():
            setters[name](value, new)
        return value


__all__ = ["amend", "dataclass", "replace"]


def _value(cls: type) -> Any:
    cls.__doc__ = cls.__doc__ or cls.__name__  # without one, `dataclasses` computes the signature, which is slow
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    fields = dataclasses.fields(made)
    names = [field.name for field in fields]
    made.__init__ = _compiled_when_called(made, fields)
    made._values = staticmethod(attrgetter(*names) if names else lambda _: ())  # noqa: SLF001 - the class is made here
    made._copy = staticmethod(_copy_compiled_when_called(made, names))  # noqa: SLF001
    made._shown = tuple(field.name for field in fields if field.repr)  # noqa: SLF001
    made.__repr__, made.__eq__, made.__hash__ = _repr, _eq, _hash
    made.__setattr__ = made.__delattr__ = _refuse
    made.__getstate__, made.__setstate__ = _get_state, _set_state
    return made


def _compiled_when_called(cls: Any, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """Return an `__init__` that compiles the real one: a start makes instances of few of the classes it imports."""

    def initialise(self: object, **values: object) -> None:
        cls.__init__ = _initialiser(cls, fields)
        cls.__init__(self, **values)

    return initialise


def _copy_compiled_when_called(cls: Any, names: list[str]) -> Callable[[object, object], None]:
    """Return a function that compiles the real copy of all fields. `replace` uses it."""

    def copy(new: object, old: object) -> None:
        cls._setters = {name: getattr(cls, name).__set__ for name in names}  # the slot's own: `__setattr__` refuses
        lines = [f" _set_{name}(new, old.{name})" for name in names] or [" pass"]
        space = {f"_set_{name}": setter for name, setter in cls._setters.items()}
        exec("\n".join(["def copy(new, old):", *lines]), space)  # noqa: S102 - field names of our own classes
        cls._copy = staticmethod(space["copy"])
        cls._copy(new, old)

    return copy


def _initialiser(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    names: dict[str, Any] = {"_missing": dataclasses.MISSING}
    arguments, lines = ["self", "*"] if fields else ["self"], []
    for field in fields:
        names[f"_set_{field.name}"] = getattr(cls, field.name).__set__  # the slot's own: `__setattr__` refuses
        value = field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{field.name}"] = field.default_factory
            value = f"_make_{field.name}() if {field.name} is _missing else {field.name}"
            arguments.append(f"{field.name}=_missing")
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{field.name}"] = field.default
            arguments.append(f"{field.name}=_default_{field.name}")
        else:
            arguments.append(field.name)
        lines.append(f" _set_{field.name}(self, {value})")
    source = "\n".join([f"def __init__({', '.join(arguments)}):", *(lines or [" pass"])])
    exec(source, names)  # noqa: S102 - the source holds field names of our own classes, nothing else
    made: Callable[..., None] = names["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _repr(self: Any) -> str:
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._shown)})"


def _eq(self: Any, other: Any) -> Any:
    return self._values(self) == other._values(other) if type(self) is type(other) else NotImplemented  # noqa: SLF001


def _hash(self: Any) -> int:
    return hash(self._values(self))


def _get_state(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, field.name) for field in dataclasses.fields(self))


def _set_state(self: Any, state: tuple[Any, ...]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _refuse(self: Any, name: str, *_: object) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r} of {type(self).__qualname__}")
