"""The role of a narrative document, derived from its path."""

from typing import NamedTuple

MAIN_STREAM = "main"

_BY_FOLDER = {"decisions": "decision", "log": "log", "tasks": "task"}


class DocumentPlace(NamedTuple):
    stream: str
    role: str


def place(path: str) -> DocumentPlace:
    """The stream and the role of a document, by its path under `narrative/`."""
    match path.split("/"):
        case ["work", _, *_]:
            return DocumentPlace("work", "work")
        case ["feature", slug, *rest]:
            return DocumentPlace(f"feature-{slug}", _role(rest))
        case parts:
            return DocumentPlace(MAIN_STREAM, _role(parts))


def _role(parts: list[str]) -> str:
    if parts == ["README.md"]:
        return "overview"
    return _BY_FOLDER.get(parts[0], "doc") if len(parts) > 1 else "doc"
