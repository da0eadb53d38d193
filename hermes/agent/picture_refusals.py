"""Pictures that an endpoint refused, so that later requests leave them out and need no second call.

A refused request says nothing about single pictures, so all of its pictures count as refused. A model that refused
two requests and never accepted one is shown no pictures until the daemon restarts.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from hermes.ports.agent import Model

BLIND_AFTER = 2  # refused requests
REMEMBERED = 1000  # pictures of one model

Place = tuple[str, str]  # endpoint and name of a model


class PictureRefusals:
    def __init__(self) -> None:
        self._refused: dict[Place, dict[str, None]] = {}
        self._requests: dict[Place, int] = {}
        self._seeing: set[Place] = set()  # models that accepted a picture

    def refused(self, model: Model, name: str, pictures: AbstractSet[str]) -> None:
        """Note that a request failed with these pictures, and succeeded without them."""
        place = (model.endpoint, name)
        known = self._refused.setdefault(place, {})
        known.update(dict.fromkeys(pictures))
        while len(known) > REMEMBERED:
            del known[next(iter(known))]
        self._requests[place] = self._requests.get(place, 0) + 1

    def accepted(self, model: Model, name: str) -> None:
        self._seeing.add((model.endpoint, name))

    def is_blind(self, model: Model, name: str) -> bool:
        place = (model.endpoint, name)
        return place not in self._seeing and self._requests.get(place, 0) >= BLIND_AFTER

    def of(self, model: Model, name: str) -> AbstractSet[str]:
        return self._refused.get((model.endpoint, name), {}).keys()
