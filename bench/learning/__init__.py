"""What learning is worth: facts that are asked for later, and a skill that is used again.

The model is scripted. It understands the sentences of the bench, but uses only what is in its prompt and in results
of its tools. So the figures measure the mechanism: whether the right text reaches the model, and what that costs.
"""

from __future__ import annotations

from bench.learning import fact_recall, skill_reuse


def run() -> dict[str, float]:
    return {**fact_recall.run(), **skill_reuse.run()}
