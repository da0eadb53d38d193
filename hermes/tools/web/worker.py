"""The process that reads fetched documents: one in, its text out.

A program of its own. Pages and PDFs come from strangers, and some are made to keep a parser busy for hours or to eat
all memory; here both end with this process and not with the daemon's.

In: a line of JSON about the document, then its bytes. Out: a JSON object, with `problem` when there is no text.
"""

from __future__ import annotations

import json
import resource
import sys

from hermes.tools.web.document import DocumentUnreadableError, read_document

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
        answer = {"problem": "reading it takes more memory than it may"}
    sys.stdout.buffer.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
