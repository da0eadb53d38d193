"""Fusion of two rankings of hits: reciprocal rank fusion. Pure.

The scores of full text and of meaning cannot be compared, but the places in their rankings can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hermes.domain.values import replace
from hermes.search.index import Hit

K: Final = 60  # damps the first places, as in the original method (Cormack, Clarke and Buettcher, 2009)


def fused(*rankings: Sequence[Hit], limit: int, distinct: bool) -> list[Hit]:
    """Return the best hits of all rankings. `distinct`: one per conversation.

    Of one conversation or message in several rankings, the hit of the first ranking is shown.
    """
    scores: dict[object, float] = {}
    shown: dict[object, Hit] = {}
    for ranking in rankings:
        for place, hit in enumerate(ranking, 1):
            same = hit.root if distinct else (hit.session, hit.seq)
            scores[same] = scores.get(same, 0.0) + 1 / (K + place)
            shown.setdefault(same, hit)
    ranked = sorted(shown, key=lambda same: -scores[same])
    return [replace(shown[same], score=scores[same]) for same in ranked[:limit]]
