"""`decisions.md`: all decisions on one page.

It is generated from the files in `decisions/` and stays on this machine. A page of that name that a
person wrote is not changed.
"""

import os
from typing import NamedTuple

from ctx import disk
from ctx.narrative import document_format, document_names, document_roles, narrative_scan
from ctx.narrative.markdown_blocks import nest_headings

_OURS = "<!-- Made by ctx from the files in decisions/: what is changed here is lost. -->"


class _Decision(NamedTuple):
    number: str
    created: str
    path: str
    text: str


def decisions(folder: str) -> str:
    """The page: the newest decision first, decisions without a number last."""
    pages = []
    for file in narrative_scan.documents(folder):
        if document_roles.place(file.path).role != "decision" or _is_readme(file.path):
            continue
        data = narrative_scan.read(folder, file.path)
        if data is not None:
            pages.append(_decision(file.path, data.decode("utf-8", "replace")))
    pages.sort(key=lambda page: (int(page.number or 0), page.created, page.path), reverse=True)
    parts = [_OURS, "# Decisions", *(page.text for page in pages)]
    return "\n\n".join(parts if pages else [*parts, "None yet."]) + "\n"


def write_decisions(folder: str) -> bool:
    """Update the page. False if it is up to date, or if ctx did not write it."""
    page = decisions(folder).encode("utf-8", "replace")
    full = os.path.join(folder, narrative_scan.PROJECTION)
    if os.path.lexists(full):
        present = narrative_scan.read(folder, narrative_scan.PROJECTION)
        if present is None or not present.startswith(_OURS.encode()) or present == page:
            return False
    elif page.endswith(b"None yet.\n"):
        return False
    with disk.explain_errors(f"writing {narrative_scan.PROJECTION}"):
        # Derived: after a crash it is generated again.
        disk.replace(full, page, durable_name=False)
    return True


def _is_readme(path: str) -> bool:
    return os.path.basename(path).lower() == "readme.md"


def _decision(path: str, text: str) -> _Decision:
    document = document_format.parse(text)
    number = document_names.number_of(path) or ""
    title = document.title or os.path.basename(path)
    facts = [f"[{path}](<{path}>)", (document.created or "")[:10], ", ".join(document.tags)]
    parts = [
        f"## {number} {title}".replace("  ", " "),
        " · ".join(fact for fact in facts if fact),
        nest_headings(document.body, 1),
    ]
    shown = "\n\n".join(part for part in parts if part)
    return _Decision(number, document.created or "", path, shown)
