"""Rust types, and the principal name in each."""

import functools
import re

_NAME = re.compile(r"(?:::)?\s*([^\W\d]\w*(?:\s*::\s*[^\W\d]\w*)*)\s*(::\s*)?(<|\()?")
_PREFIX = re.compile(
    r"(?:&|\*(?:const|mut)\b|'\w+\b|mut\b|dyn\b|impl\b|ref\b|\?|for\s*<[^<>]*>|#\[[^\]]*\]|r#)\s*"
)
# Wrappers that are transparent, or that need only a common method.
_WRAPPERS = frozenset(
    {
        *("Box", "Rc", "Arc", "Pin", "Option", "Result", "Poll", "Cow", "Mutex", "RwLock"),
        *("RefCell", "Cell", "UnsafeCell", "OnceCell", "OnceLock", "LazyLock", "Lazy", "LazyCell"),
        *("MutexGuard", "RwLockReadGuard", "RwLockWriteGuard", "Ref", "RefMut", "NonNull"),
        *("ManuallyDrop", "MaybeUninit", "LockResult", "CachePadded"),
    }
)
_OUTPUT = re.compile(r"\bOutput\s*=\s*")
_PRIMITIVE = frozenset(
    "bool char str u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64".split()
)
_MOST_WRAPPERS = 12
_MOST_REMEMBERED = 20_000
_COMMON_BOUNDS = frozenset(
    {
        *("Send", "Sync", "Sized", "Unpin", "Copy", "Clone", "Debug", "Default", "Eq", "PartialEq"),
        *("Ord", "PartialOrd", "Hash", "Display", "Error", "FnOnce", "FnMut", "Fn", "UnwindSafe"),
    }
)


@functools.lru_cache(_MOST_REMEMBERED)
def principal(text: str) -> str:
    """The principal type of a type: `&mut Box<dyn a::B<C>>` is `a::B`.

    For `Result<T, E>` and `Option<T>` it is `T`: the value after `?` or `unwrap`. For a future it
    is its output, because expressions omit `.await`.
    """
    for _ in range(_MOST_WRAPPERS):
        text = _without_prefix(text)
        match = _NAME.match(text)
        if match is None:
            return ""
        name = match.group(1)
        last = name.rpartition("::")[2].strip()
        rest = text[match.end() :]
        if match.group(3) == "<" and last in _WRAPPERS:
            arguments = [argument for argument in _arguments(rest) if argument[:1] != "'"]
            if arguments:
                text = arguments[0]
                continue
        if match.group(3) == "<" and last == "Future" and (output := _OUTPUT.search(rest)):
            text = rest[output.end() :]
            continue
        if match.group(3) == "(" or name in _PRIMITIVE:
            return ""
        return "".join(name.split())
    return ""


def self_type(text: str) -> str:
    """The type of an implementation: like `principal`, but a `Box` stays a `Box`."""
    match = _NAME.match(_without_prefix(text))
    return "".join(match.group(1).split()) if match else ""


def path_of(text: str) -> str:
    """A path without generic arguments: `a::B<C>` becomes `a::B`."""
    match = _NAME.match(_without_prefix(text))
    return "".join(match.group(1).split()) if match else ""


def bounds(text: str) -> tuple[str, ...]:
    """The traits in `: A + b::C<D> + 'a`, without those that add no members."""
    paths = []
    for bound in split_outside(text.strip().removeprefix(":"), "+"):
        path = principal(bound)
        if path and path.rpartition("::")[2] not in _COMMON_BOUNDS:
            paths.append(path)
    return tuple(paths)


def _without_prefix(text: str) -> str:
    text = text.strip()
    while match := _PREFIX.match(text):
        text = text[match.end() :]
    return text


def _arguments(text: str) -> list[str]:
    """The arguments between the `<` before the text and its `>`."""
    depth = 1
    for place, character in enumerate(text):
        if character == "<":
            depth += 1
        elif character == ">" and text[place - 1 : place] != "-":
            depth -= 1
            if not depth:
                text = text[:place]
                break
    return split_outside(text, ",")


def split_outside(text: str, separator: str) -> list[str]:
    """Split a text at separators outside of brackets."""
    if separator not in text:
        return [text.strip()] if text.strip() else []
    parts, depth, begin = [], 0, 0
    for place, character in enumerate(text):
        if character in "<([{":
            depth += 1
        elif character in ")]}" or (character == ">" and text[place - 1 : place] not in "-="):
            depth -= 1
        elif character == separator and depth <= 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    parts.append(text[begin:].strip())
    return [part for part in parts if part]
