"""Worker program that converts one fetched document to text.

It runs in its own process because a hostile page or PDF can take unlimited time or memory to parse.

Input: a line of JSON about the document, then its bytes. Output: a JSON object, with `problem` if there is no text.
"""

from __future__ import annotations

import json
import resource
import sys

from hermes.tools.web.web_document import DocumentUnreadableError, read_document

CPU_S = 20
MEMORY_BYTES = 512 << 20


def limit_resources() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def main() -> None:
    limit_resources()
    about = json.loads(sys.stdin.buffer.readline())
    try:
        document = read_document(sys.stdin.buffer.read(), **about)
        answer = {"kind": document.kind, "title": document.title, "text": document.text}
    except DocumentUnreadableError as error:
        answer = {"problem": str(error)}
    except (MemoryError, RecursionError):
        answer = {"problem": "reading it takes too much memory"}
    sys.stdout.buffer.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
