"""Code inside of macros, which the grammar sees only as tokens.

Many macros take plain code: `cfg_unix! { pub fn … }`, `assert_eq!(a.b(), c)`. Such code is
parsed as if the macro were not there. Offsets do not change: what is removed becomes spaces.
"""

import re

_BANG = re.compile(rb"!\s?[({\[]")
_WORD_BEFORE = re.compile(rb"[A-Za-z_]\w*\Z")
_LONGEST_NAME = 40
_LONGEST_HEAD = 200
# The end of each one must be searched.
_MOST_OPENED = 1_000

# Their arguments are expressions like those of a function.
_LIKE_FUNCTIONS = frozenset(
    b"assert assert_eq assert_ne debug_assert debug_assert_eq debug_assert_ne println print"
    b" eprintln eprint format format_args panic write writeln unreachable todo unimplemented dbg"
    b" ready try assert_ok assert_err assert_some assert_none assert_pending assert_ready"
    b" assert_ready_ok assert_ready_err assert_ready_eq prop_assert prop_assert_eq join try_join"
    b" bail ensure anyhow pin info warn".split()
)
# Their content is a template for code.
_TEMPLATES = frozenset(b"quote quote_spanned parse_quote parse_quote_spanned macro_rules".split())

_ITEM = re.compile(
    rb"(?:\s|//[^\n]*\n|/\*[^*]*\*/){0,2000}(?:#!?\[|(?:pub|fn|mod|use|impl|struct|enum|trait|static|type"
    rb"|extern|union|const(?!\s*\{)|(?:unsafe|async)\s+(?:unsafe|fn|impl|trait|extern))"
    rb"\b|macro_rules!|[A-Za-z_][\w:]*!\s*\{)"
)
_HEAD = re.compile(rb"[A-Za-z_][\w:]*!\s?")
_BRANCHES = re.compile(rb"[ \t]*\n([ \t]*)if\s+#\[cfg")
_NOT_SPACE = re.compile(rb"\S")


def without_macros(content: bytes) -> bytes:
    """The same number of bytes, with the code in macros as if it were outside."""
    places = [match.start() for match in _BANG.finditer(content)]
    if not places:
        return content
    text = bytearray(content)
    opened = 0
    for place in places:
        word = _WORD_BEFORE.search(content, max(0, place - _LONGEST_NAME), place)
        if word is None:
            continue
        name = word.group()
        opening = place + 1 + (content[place + 1 : place + 2] in (b" ", b"\n"))
        bracket = content[opening : opening + 1]
        if bracket == b"(":
            if name in _LIKE_FUNCTIONS and not content.startswith(b"biased", opening + 1):
                # An ordinary identifier for the grammar. The real name is read from the file.
                text[place] = 0x5F
        elif bracket == b"[":
            if name == b"vec":
                text[word.start() : opening] = b" " * (opening - word.start())
        elif name not in _TEMPLATES and opened < _MOST_OPENED:
            opened += 1
            _open(content, text, opening)
    return bytes(text)


def _open(content: bytes, text: bytearray, opening: int) -> None:
    """Remove the macro around items, if it contains items."""
    begin = content.rfind(b"\n", max(0, opening - _LONGEST_HEAD), opening) + 1
    head = content[begin:opening]
    bare = head.lstrip()
    if not _HEAD.fullmatch(bare):
        return
    choice = _BRANCHES.match(content, opening + 1)
    if choice is None and not _ITEM.match(content, opening + 1):
        return
    indent = head[: len(head) - len(bare)]
    line_end = content.find(b"\n", opening)
    closing = content.rfind(b"}", opening, line_end if line_end >= 0 else len(content))
    if closing < 0 or content[closing + 1 : line_end].strip():
        # It ends at a line with only its brace, indented like the line on which it begins.
        closing = content.find(b"\n" + indent + b"}", opening) + 1 + len(indent)
        if closing <= len(indent):
            return
    text[begin : opening + 1] = b" " * (opening + 1 - begin)
    # The last item in a macro may lack its usual terminator.
    is_ended = content[max(opening, closing - 200) : closing].rstrip().endswith((b";", b"}"))
    text[closing] = 0x20 if is_ended else 0x3B
    if choice:
        _open_branches(text, opening + 1, closing, re.escape(choice.group(1)))


def _open_branches(text: bytearray, begin: int, end: int, indent: bytes) -> None:
    """Remove `if #[cfg(…)] {` and similar lines: every branch applies somewhere."""
    branch = re.compile(
        rb"^"
        + indent
        + rb"(?:\}[ \t]*else[ \t]*)?(?:(?:if[ \t]+#\[cfg[^\n]*\][ \t]*)?\{|\})?[ \t]*$",
        re.MULTILINE,
    )
    text[begin:end] = branch.sub(_blank, bytes(text[begin:end]))


def _blank(match: "re.Match[bytes]") -> bytes:
    return _NOT_SPACE.sub(b" ", match.group())
