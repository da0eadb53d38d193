"""The tool calls of a coding session, in order: an agent adds a function to a small Python project."""

from __future__ import annotations

from typing import Final

_WORK: Final = "/home/ann/project"

_WRITE_TEST: Final = """cat > tests/test_product.py <<'E'
import unittest
from sums import product


class Product(unittest.TestCase):
    def test_product(self):
        self.assertEqual(product(2, 3), 6)
E"""
_SERVE: Final = """python3 -m http.server 8099 --bind 127.0.0.1 >/dev/null 2>&1 &
until python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:8099/").status)' 2>/dev/null
do sleep 0.1; done
kill %1"""

# The tool and its command or path.
CALLS: Final = (
    ("terminal", "ls -la"),
    ("terminal", "git status --short && git log --oneline -5"),
    ("read_file", f"{_WORK}/pyproject.toml"),
    ("read_file", f"{_WORK}/sums/__init__.py"),
    ("terminal", "grep -rn 'def ' --include='*.py' ."),
    ("terminal", "find . -name '*.py' -not -path './.venv/*' | xargs wc -l"),
    ("terminal", "python3 --version; command -v git"),
    ("terminal", "python3 -m unittest -v 2>&1 | tail -5"),
    ("terminal", "git checkout -q -b add-product"),
    ("write_file", f"{_WORK}/sums/product.py"),
    ("terminal", "printf 'def product(a, b):\\n    return a * b\\n' > sums/product.py"),
    ("patch", f"{_WORK}/sums/__init__.py"),
    ("terminal", "sed -i '1i from .product import product' sums/__init__.py && head -3 sums/__init__.py"),
    ("write_file", f"{_WORK}/tests/test_product.py"),
    ("terminal", _WRITE_TEST),
    ("terminal", "python3 -m unittest 2>&1 | tail -3"),
    ("terminal", "python3 -c 'import sums; print(sums.product(6, 7))'"),
    ("terminal", "git diff --stat && git add -A && git commit -qm 'Add product'"),
    ("terminal", "rm -rf build && mkdir build"),
    ("terminal", "python3 -m venv --without-pip .venv && . .venv/bin/activate && python -c 'import sums'"),
    ("terminal", "python3 -m pip list 2>/dev/null | head -5; true"),
    ("terminal", "make test 2>/dev/null || python3 -m unittest -q"),
    ("terminal", "for f in sums/*.py; do python3 -m py_compile \"$f\"; done"),
    ("terminal", "find . -name __pycache__ -prune -exec rm -rf {} +"),
    ("terminal", "python3 - <<'E'\nimport pathlib\npathlib.Path('build/list.txt').write_text('sums')\nE"),
    ("terminal", "tar czf build/sums.tgz sums tests && tar tzf build/sums.tgz | head -3"),
    ("terminal", "OUT=$(mktemp -d); cp -r sums \"$OUT\"; ls \"$OUT\"; rm -rf \"$OUT\""),
    ("terminal", "F=$(ls tests/*.py | head -1); cat \"$F\""),
    ("terminal", "git stash -q 2>/dev/null; git stash pop -q 2>/dev/null; git branch -a"),
    ("terminal", "python3 -c 'import os, shutil; shutil.rmtree(\"build\"); os.makedirs(\"build\")'"),
    ("terminal", "awk 'BEGIN { while ((\"ls sums\" | getline f) > 0) print f }'"),
    ("terminal", "ls sums | xargs -I{} sh -c 'echo checking {}'"),
    ("terminal", "echo 'x = 1' > ~/scratch.py && python3 ~/scratch.py && rm ~/scratch.py"),
    ("terminal", "mkdir -p ~/.config/tool && echo 'a: 1' > ~/.config/tool/config.yml"),
    ("terminal", "perl -pi -e 's/product/times/ if /unused/' sums/product.py"),
    ("terminal", _SERVE),
    ("terminal", "chmod +x build; bash -c \"$(printf 'echo %s' built)\""),
    ("terminal", "git show --stat HEAD | cat"),
    ("terminal", "git rev-parse --short HEAD > build/version && cat build/version"),
    ("terminal", "rm -rf .venv build && git status --short"),
)  # fmt: skip
