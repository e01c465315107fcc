"""One-line texts: shortening, lists, code names, sentences; and test and document paths."""

import posixpath
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_ANY_SPACE = re.compile(r"\s+")
_PERSON = re.compile(
    r"\A(?:(?:i|we)(?:'ve|’ve| have)? (?:also |now |then |successfully )?|successfully )(?!(?:am"
    r"|was|were|will|can|could|would|should|may|might|must|need|think|believe|guess|suspect|hope"
    r"|know|see|want|have|had|to|\w{1,10}n['’]t|(?:do|did) not)\b)",
    re.IGNORECASE,
)
# `src/net.py` - Added a retry
_PLACE = re.compile(r"\A`?[\w./-]{1,80}\.\w{1,6}`?(?: [-–—]|:) (?=[A-Z])")
_WRITTEN_PREFIX = re.compile(r"\A(re)?written\b")
_LEAD = re.compile(
    r"(?:ok(?:ay)?|because|so|and|but|now|actually|great|good|interesting(?:ly)?|ah|aha|hmm|perfect|right"
    r"|well|also|note(?: that|:)|important(?:ly)?:?|gotcha:|caveat:|(?:it )?turns out(?: that)?"
    r"|i (?:can )?(?:now )?(?:see|found(?: out)?|discovered|noticed|reali[sz]ed|confirmed"
    r"|learned) that|i(?:'ve|’ve| have) (?:found(?: out)?|discovered|noticed|confirmed) that"
    r"|that (?:did not|didn't|does not|doesn't) (?:help|work)|(?:found|discovered"
    r"|confirmed) (?:it|the (?:bug|problem|issue|cause))|the (?:actual |real |underlying |main "
    r"|root )?(?:problem|issue|bug|reason|cause|culprit)(?: here)? (?:is|was) that)[,.:!]*\s+",
    re.IGNORECASE,
)
_LONGEST_CODE = 60
# One line never needs more than the beginning of a text.
_ENOUGH = 4_000


def line(text: str) -> str:
    """A text on one line."""
    return _ANY_SPACE.sub(" ", text[:_ENOUGH]).strip()


def shortened(text: str, longest: int) -> str:
    """One line of at most `longest` characters, cut between words if possible."""
    whole = line(text)
    if len(whole) <= longest:
        return whole
    cut = whole[: longest - 1]
    space = cut.rfind(" ")
    if space > longest // 2:
        cut = cut[:space]
    if cut.count("`") % 2:
        # Do not cut inside backticks.
        before = cut.rpartition("`")[0].rstrip()
        cut = before if len(before) > longest // 3 else cut.replace("`", "")
    is_quoted = cut.count('"') % 2 and not whole.count('"') % 2
    cut = (cut[: longest - 2] if is_quoted else cut).rstrip(" ,;:.-–—(")
    # A quotation ends with the text.
    return f'{cut}…"' if is_quoted else f"{cut}…"


def quoted(text: str) -> str:
    """What a program printed, as a quotation. It is data: nobody said it."""
    inner = text.replace('"', "'")
    return f'"{inner}"' if inner else ""


def code(text: str) -> str:
    """A command or a name, in backticks."""
    return f"`{shortened(text.replace('`', ''), _LONGEST_CODE)}`"


def listed(words: Sequence[str], most: int) -> str:
    """`a, b and 3 more`."""
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    if len(words) > 1:
        return f"{', '.join(words[:-1])} and {words[-1]}"
    return "".join(words)


def sentence(text: str) -> str:
    """A text with a capital at the beginning and a period at the end."""
    words = capital(text.strip())
    return words if words.rstrip('"').endswith((".", "!", "?", "…")) or not words else f"{words}."


def capital(text: str) -> str:
    """A text with a capital at the beginning, unless it begins with a code name."""
    first = text.partition(" ")[0].rstrip(",.:;!?").replace("'", "").replace("’", "")
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text


def impersonal(text: str) -> str:
    """`Added it` for `I've added it`."""
    words = _PERSON.sub("", _PLACE.sub("", text, count=1), count=1)
    return capital(_WRITTEN_PREFIX.sub(lambda found: f"{found[1] or ''}wrote", words, count=1))


def without_lead(text: str) -> str:
    """A finding without its introduction, such as `It turns out that`."""
    words = text.strip()
    for _ in range(3):
        lead = _LEAD.match(words)
        if lead is None or lead.end() == len(words):
            break
        words = words[lead.end() :]
    return capital(words.rstrip("."))


def distinct(words: Iterable[str]) -> tuple[str, ...]:
    """The words in order, without duplicates and empty ones."""
    return tuple(dict.fromkeys(word for word in words if word))


@lru_cache(maxsize=4_096)
def is_test(path: str) -> bool:
    """Whether a path looks like a test file, by the conventions of many languages."""
    folders, name = posixpath.split(path.lower())
    stem = name.partition(".")[0]
    return (
        any(
            part in ("test", "tests", "__tests__", "spec", "specs", "e2e")
            or part.endswith(("_test", "_tests", "-tests"))
            for part in folders.split("/")
        )
        or stem.startswith("test_")
        or stem.endswith(("_test", "_spec", "test", "tests"))
        or ".test." in name
        or ".spec." in name
    )


@lru_cache(maxsize=4_096)
def is_document(path: str) -> bool:
    """Whether a path is a document or a lock file, which cannot break code."""
    name = posixpath.basename(path.lower())
    stem, _, suffix = name.rpartition(".")
    return (
        suffix in ("md", "rst", "adoc", "lock")
        or name in ("package-lock.json", "pnpm-lock.yaml", "go.sum", "license")
        or stem.startswith(("changelog", "readme", "news"))
        or name.startswith(("changelog", "readme"))
    )
