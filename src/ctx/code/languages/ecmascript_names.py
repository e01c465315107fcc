"""The names in a JavaScript or TypeScript file, by its text: computed once per file."""

import re
from collections import Counter

_EXPORTED = re.compile(
    rb"export(?:\s*(?:type\s*)?\{([^{}]*)|s\s*=\s*\{([^{}]*)"
    rb"|(?:\s+default|\s*=|s\s*=|s\.[\w$]+\s*=)\s*([\w$]+))"
)
_DECLARED = re.compile(rb"(?:const|let|var|function|class)\s+([\w$]+)")
_IMPORTED = re.compile(rb"import\s[^;\"']*")
_NAME = re.compile(rb"[\w$\x80-\xff]+")


class FileNames:
    """The names of the last file."""

    def __init__(self) -> None:
        self._shared: tuple[bytes, frozenset[bytes] | None] = (b"", None)
        self._declared: tuple[bytes, Counter[bytes]] = (b"", Counter())

    def is_shared(self, content: bytes, name: str) -> bool:
        """Whether a file exports a name apart from its definition. In a script without imports and
        exports, all names are global."""
        if self._shared[0] is not content:
            self._shared = (content, _exported(content))
        shared = self._shared[1]
        return shared is None or name.encode() in shared

    def has_several(self, content: bytes, name: str) -> bool:
        """Whether a name is imported, or declared more than once, anywhere in a file."""
        if self._declared[0] is not content:
            names = _DECLARED.findall(content)
            for listed in _IMPORTED.findall(content):
                names += 2 * _NAME.findall(listed)
            self._declared = (content, Counter(names))
        return self._declared[1][name.encode()] > 1


def _exported(content: bytes) -> frozenset[bytes] | None:
    is_module = b"export" in content or b"\nimport" in content or content.startswith(b"import")
    if not is_module:
        return None
    names: set[bytes] = set()
    for match in _EXPORTED.finditer(content):
        names.update(_NAME.findall(b" ".join(part or b"" for part in match.groups())))
    return frozenset(names)
