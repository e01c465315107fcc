"""Rust types and values: the principal name in each, and what a `let` binds."""

import functools
import re

from ctx.code.language import flatten

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
_COMMON_BOUNDS = frozenset(
    {
        *("Send", "Sync", "Sized", "Unpin", "Copy", "Clone", "Debug", "Default", "Eq", "PartialEq"),
        *("Ord", "PartialOrd", "Hash", "Display", "Error", "FnOnce", "FnMut", "Fn", "UnwindSafe"),
    }
)
_LONGEST_VALUE = 400
_LONGEST_CHAIN = 300
_LONGEST_TAIL = 200
_MOST_REMEMBERED = 20_000
_MOST_GENERICS = 10
_LET = re.compile(rb"let\s+(?:mut\s+)?([A-Za-z_\x80-\xff][\w\x80-\xff]*)\s*(:(?!:)|=)\s*")
# What an Option, a Result or a Poll contains is its principal type anyway.
_LET_SOME = re.compile(
    rb"let\s+(?:\w+\s*::\s*)*(?:Some|Ok|Ready)\s*\(\s*&?(?:ref\s+)?(?:mut\s+)?"
    rb"([A-Za-z_\x80-\xff][\w\x80-\xff]*)\s*\)\s*=\s*"
)
_LET_SEVERAL = re.compile(rb"let\s*\(([\w\s,\x80-\xff]*)\)\s*=\s*")
_VARIABLE = re.compile(r"(?:mut\s+)?([^\W\d]\w*)")
_HEAD = re.compile(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*(?:::\w+)*(?:\.\w+)*\s*([({])")
_TAIL = re.compile(rb"(?:\s*\.(?:await|unwrap\(\)|expect\(\"[^\"\n]*\"\))|\?)*\Z")
# On a separate line or after a block: the end of a call that began long before.
_ENDS = (b"})", b"\n)", b" )", b",)")
_STRUCT_LITERAL = re.compile(rb"([A-Za-z_\x80-\xff][\w\x80-\xff:]*(?:::<[^<>]*>)?)\s*\{")
_WRAPPED = re.compile(
    rb"(?:\w+::)*(?:Some|Ok|(?:Box|Rc|Arc|Pin|Mutex|RwLock|RefCell|Cell|Cow|OnceCell)::(?:new|pin)"
    rb"|(?:assert_ok|assert_ready|assert_ready_ok|assert_some|ready|dbg|try)!)\("
)
_NO_NAME = b"|\"'[{(0123456789!-"
_NO_VALUES = frozenset(
    "return break continue move true false None unsafe async loop const match if try".split()
)
_PLAIN = re.compile(rb"[\w.:\x80-\xff]+")
_GENERICS = re.compile(rb"(?:::|(?<=\w))<[^<>()]*>(?=\s*(?:::|\(|as\b|>|,)|\Z)")
_QUALIFIED = re.compile(
    rb"\A<\s*(?:(?:[A-Z]\w?|Self)\s+as\s+([^<>]*?)|([^<>]*?)(?:\s+as\s+[^<>]*)?)>\s*::"
)
_GROUPED = re.compile(rb"\A\(\s*[&*]*\s*(?:mut\s+)?\*?(\w+(?:\.\w+)*)\s*\)(?=\.)")
_TRIED = re.compile(rb"\?(?=[.?\s]|\Z)")
_AWAITED = re.compile(rb"\s*\.\s*await\b")
# Methods that return the value itself, or its principal type.
_THROUGH = re.compile(
    r"\.(?:unwrap|expect|unwrap_or_default|clone|to_owned|as_ref|as_mut|as_deref|as_deref_mut|borrow"
    r"|borrow_mut|by_ref|lock|project|as_pin_mut|unwrap_unchecked|take\(\)\.unwrap)\(\)(?=\.|\Z)"
)
# `self::x` is the `x` of the module; `self.x` is something else.
_OF_MODULE = re.compile(r"\A(?:(?:self)?::)+")
_RAW = re.compile(rb"\br#(?=\w)")


@functools.lru_cache(_MOST_REMEMBERED)
def principal(text: str) -> str:
    """The principal type of a type: `&mut Box<dyn a::B<C>>` is `a::B`.

    For `Result<T, E>` and `Option<T>` it is `T`: the value after `?` or `unwrap`. For a future it
    is its output, because expressions omit `.await`.
    """
    for _ in range(_MOST_WRAPPERS):
        text = _without_prefix(text)
        found = _NAME.match(text)
        if found is None:
            return ""
        name = found.group(1)
        last = name.rpartition("::")[2].strip()
        rest = text[found.end() :]
        if found.group(3) == "<" and last in _WRAPPERS:
            arguments = [each for each in _arguments(rest) if each[:1] != "'"]
            if arguments:
                text = arguments[0]
                continue
        if found.group(3) == "<" and last == "Future" and (output := _OUTPUT.search(rest)):
            text = rest[output.end() :]
            continue
        if found.group(3) == "(" or name in _PRIMITIVE:
            return ""
        return "".join(name.split())
    return ""


def path_of(text: str) -> str:
    """A path without generic arguments: `a::B<C>` becomes `a::B`."""
    found = _NAME.match(_without_prefix(text))
    return "".join(found.group(1).split()) if found else ""


def bounds(text: str) -> tuple[str, ...]:
    """The traits in `: A + b::C<D> + 'a`, without those that add no members."""
    found = []
    for each in split_outside(text.strip().removeprefix(":"), "+"):
        path = principal(each)
        if path and path.rpartition("::")[2] not in _COMMON_BOUNDS:
            found.append(path)
    return tuple(found)


def _without_prefix(text: str) -> str:
    text = text.strip()
    while found := _PREFIX.match(text):
        text = text[found.end() :]
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


def bound_by_let(text: bytes) -> tuple[tuple[str, str], ...]:
    """The bindings of a `let`. `if let Some(x) = y` binds the principal type of the value."""
    named = _LET.match(text)
    if named and named.group(2) == b":":
        if text.find(b"= %b(" % named.group(1)) > 0:
            return ()
        type_ = principal(text[named.end() :][:_LONGEST_VALUE].decode("utf-8", "replace"))
        return ((named.group(1).decode("utf-8", "replace"), type_),)
    if named is None:
        named = _LET_SOME.match(text) or _LET_SEVERAL.match(text)
    if named is None:
        return ()
    value = _value(_shortened(text[named.end() :].rstrip(b"; \n")))
    name = named.group(1).decode("utf-8", "replace")
    if named.re is not _LET_SEVERAL:
        # A variable with the name of the function that it is assigned from must not hide the
        # function.
        return () if value == f"{name}()" else ((name, value),)
    if not value:
        return ()
    parts = (_VARIABLE.fullmatch(part.strip()) for part in name.split(","))
    return tuple(
        (part.group(1), f"={value.removeprefix('=')}.{place}")
        for place, part in enumerate(parts)
        if part
    )


def _shortened(value: bytes) -> bytes:
    """A value without its long inner part: the callee, or the constructed type."""
    if len(value) <= _LONGEST_VALUE:
        return value.partition(b" else {")[0]
    value = value[:-_LONGEST_TAIL] + _TAIL.sub(b"", value[-_LONGEST_TAIL:])
    head = _HEAD.match(value)
    if head and (value.endswith(b"}") if head.group(1) == b"{" else value.endswith(_ENDS)):
        return head.group() + (b"}" if head.group(1) == b"{" else b")")
    return b""


@functools.lru_cache(_MOST_REMEMBERED)
def _value(text: bytes) -> str:
    """The type of a value, if it is known: the result of a call, or an alias."""
    if text[:1] in b"&*":
        text = text.lstrip(b"&* \n")
        if text.startswith(b"mut "):
            text = text[4:].lstrip()
    if text.endswith(b"}"):
        literal = _STRUCT_LITERAL.match(text)
        made = named_by(literal.group(1)) if literal else None
        return f"{made}()" if made and made not in _NO_VALUES else ""
    if not text or text[:1] in _NO_NAME or b" as " in text:
        return ""
    if text.endswith((b"?", b".await")):
        text = _AWAITED.sub(b"", text.rstrip(b"?")).rstrip(b"?")
    while text.endswith(b")") and (wrapped := _WRAPPED.match(text)):
        text = text[wrapped.end() : -1]
    named = named_by(text)
    if not named or named[0] in "?0123456789" or named in _NO_VALUES:
        return ""
    if named.endswith("::default()"):
        # Written or derived, `default` returns an instance of the type.
        return named.removesuffix("::default()")
    return named if named[-1] == ")" else f"={named}"


def named_by(text: bytes) -> str | None:
    """An expression without arguments, `.await` and `?`."""
    if _PLAIN.fullmatch(text):
        named = text.decode("utf-8", "replace")
        return _OF_MODULE.sub("", named) if named[:5] == "self:" or named[0] == ":" else named
    if len(text) > _LONGEST_CHAIN:
        return flatten(b"?" + text[-_LONGEST_CHAIN:])
    if b"?" in text or b"await" in text:
        text = _AWAITED.sub(b"", _TRIED.sub(b"", text))
    if b"r#" in text:
        text = _RAW.sub(b"", text)
    if b"<" in text:
        for _ in range(_MOST_GENERICS):
            shorter = _GENERICS.sub(b"", text)
            if shorter == text:
                break
            text = shorter
        # A trait member of a type belongs to the type; for an unknown type, to the trait.
        text = _QUALIFIED.sub(rb"\1\2::", text)
    if text[:1] in b"&*(":
        text = _GROUPED.sub(rb"\1", text.lstrip(b"&* "))
    named_or_none = flatten(text)
    if named_or_none and ")" in named_or_none:
        named_or_none = _THROUGH.sub("", named_or_none)
    return _OF_MODULE.sub("", named_or_none) if named_or_none else None
