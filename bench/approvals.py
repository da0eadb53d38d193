"""Cost of the approval policy: CPU time for everyday commands, attack commands and very long commands."""

from __future__ import annotations

import json
import statistics
import time

from hermes.shell_policy.links import link_targets
from hermes.shell_policy.policy import decide
from tests.security.corpus import Target, load, load_everyday

_REPEATS = 5
_LENGTH = 100_000
_TARGET = Target(
    home="/home/ann",
    work="/home/ann/project",
    data="/home/ann/.local/share/hermes",
    canary="/home/ann/canary.txt",
    secret="/home/ann/.ssh/id_ed25519",
    port=34567,
)
_HUGE = (
    "# " + "x" * _LENGTH + "\nls",
    "python3 -c '" + "x" * _LENGTH + "'",
    "sed '" + "s,a;" * (_LENGTH // 4) + "' a.txt",
    "echo " + "a " * 2_400,
    "cat <<'END'\n" + "some text\n" * (_LENGTH // 10) + "END",
)


def run() -> dict[str, float]:
    everyday = sorted(_cpu_s(each.line) for each in load_everyday())
    attacks = sorted(_cpu_s(_TARGET.fill(each.line)) for each in load() if "{pad}" not in each.line)
    return {
        "everyday_p50_us": 1e6 * statistics.median(everyday),
        "everyday_p95_us": 1e6 * everyday[int(len(everyday) * 0.95)],
        "everyday_max_ms": 1e3 * everyday[-1],
        "attacks_max_ms": 1e3 * attacks[-1],
        "huge_max_ms": 1e3 * max(map(_cpu_s, _HUGE)),
    }


def _cpu_s(line: str) -> float:
    times = []
    for _ in range(_REPEATS):
        before = time.process_time()
        decide(
            line,
            cwd=_TARGET.work,
            home=_TARGET.home,
            hermes_home=_TARGET.data,
            work=_TARGET.work,
            targets=link_targets,
            deny=(),
            mode="manual",
            granted=(),
        )
        times.append(time.process_time() - before)
    return min(times)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
