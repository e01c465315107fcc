"""What is stored of a written file: its lines, which of them changed, and nothing of secret files.

Adapters store a file in the payload of its event until the event becomes a step. All hosts use one
shape, so that redaction sees whole files instead of pieces. Files that usually hold secrets are
recognised by name, because their content can look like anything: none of their text is stored.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from fnmatch import translate
from functools import cache
from operator import eq
from typing import Any, NamedTuple

from ctx.hosts.tool_calls import FileContents

MOST = 1_000_000
"""The most characters of a file that is compared as a whole."""

_MOST_COMPARED = 200
_MOST_SHOWN = 12
_MOST_REMOVED = 4
_LONGEST_SHOWN = 600
_LONGEST_LINE = 160


class LineChanges(NamedTuple):
    added: int
    removed: int
    excerpt: str


def lines(found: FileContents) -> LineChanges:
    """How many lines were added and removed, and the first of them."""
    old, new = (found.before or "").splitlines(), found.after.splitlines()
    first = _equal_at_start(old, new)
    old, new = old[first:], new[first:]
    last = _equal_at_start(old[::-1], new[::-1])
    old, new = old[: len(old) - last], new[: len(new) - last]
    if max(len(old), len(new)) > _MOST_COMPARED:
        # An exact diff would take too long.
        changed = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    else:
        changed = list(_changed_lines(old, new))
    removed = sum(line[0] == "-" for line in changed)
    return LineChanges(len(changed) - removed, removed, _excerpt(changed))


def _equal_at_start(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    equal = list(map(eq, old, new))
    return equal.index(False) if False in equal else len(equal)


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for word, start, end, new_start, new_end in SequenceMatcher(None, old, new).get_opcodes():
        if word != "equal":
            yield from (f"-{line}" for line in old[start:end])
            yield from (f"+{line}" for line in new[new_start:new_end])


def _excerpt(changed: Sequence[str]) -> str:
    shown: list[str] = []
    left = _LONGEST_SHOWN
    added = [line for line in changed if line[0] == "+"]
    if added and len(changed) > _MOST_SHOWN:
        # Added lines are more useful than removed ones.
        removed = [line for line in changed if line[0] == "-"]
        changed = [*removed[:_MOST_REMOVED], *added]
    for line in changed:
        short = line.rstrip()[:_LONGEST_LINE]
        if len(short) < 2:
            continue
        left -= len(short) + 1
        if left < 0 or len(shown) == _MOST_SHOWN:
            break
        shown.append(short)
    return "\n".join(shown)


_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd"),
    *(".npmrc", ".pypirc", ".git-credentials", ".dockercfg", ".vault_pass*", "credentials"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk"),
    *("*.asc", "*.gpg", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.tfvars"),
    *("secret.*", "secrets.*", "credentials.*", "service-account*.json", "kubeconfig"),
)
# Templates, and code that handles secrets.
_HARMLESS = (
    *("*.example", "*.sample", "*.template", "*.dist", "*.pub", "*.py", "*.rs", "*.go", "*.ts"),
    *("*.js", "*.tsx", "*.jsx", "*.java", "*.kt", "*.rb", "*.php", "*.cs", "*.c", "*.h", "*.cpp"),
    *("*.md", "*.rst", "*.swift", "*.scala", "*.sh"),
)


def is_secret_file(path: str) -> bool:
    name = posixpath.basename(path.replace("\\", "/")).lower()
    return _has(name, _NAMES) and not _has(name, _HARMLESS)


def _has(name: str, patterns: tuple[str, ...]) -> bool:
    return _any_of(patterns).match(name) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))


KEPT = "written"
"""The field of a response that contains this shape."""


def as_kept(contents: FileContents) -> dict[str, Any]:
    return {"before": contents.before, "after": contents.after, "whole": contents.is_whole}


def stored(fields: object) -> FileContents | None:
    """What `as_kept` made; None if it is something else."""
    if not isinstance(fields, Mapping):
        return None
    before, after = fields.get("before"), fields.get("after")
    if not isinstance(after, str):
        return None
    return FileContents(
        before if isinstance(before, str) else None, after, fields.get("whole") is True
    )


def limited(before: str | None, after: str, *, is_whole: bool) -> FileContents:
    """The contents; those of a file that is too large are cut, and marked as incomplete."""
    if max(len(before or ""), len(after)) <= MOST:
        return FileContents(before, after, is_whole)
    return FileContents(None if before is None else before[:MOST], after[:MOST], False)


def without_secrets(path: str, contents: FileContents) -> FileContents:
    """The contents, unless the name of the file says that it is secret."""
    return FileContents(None, "", False) if is_secret_file(path) else contents
