"""A PDF, made by hand."""

from __future__ import annotations


def a_pdf(*pages: str) -> bytes:
    """One with a line of text on each of its pages."""
    kids = " ".join(f"{10 + 2 * number} 0 R" for number in range(len(pages)))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        4: b"<< /Title (On paper) >>",
    }
    for number, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET".encode() if text else b""
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {11 + 2 * number} 0 R"
        objects[10 + 2 * number] = f"{page} /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        objects[11 + 2 * number] = b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content)
    body = b"%PDF-1.4\n"
    places: dict[int, int] = {}
    for number, value in objects.items():
        places[number] = len(body)
        body += b"%d 0 obj\n%b\nendobj\n" % (number, value)
    size = max(objects) + 1
    table = b"xref\n0 %d\n" % size
    for number in range(size):
        place = places.get(number)
        table += b"%010d 00000 n \n" % place if place else b"0000000000 65535 f \n"
    trailer = b"trailer << /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(body))
    return body + table + trailer
