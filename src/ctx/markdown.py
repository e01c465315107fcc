"""Anybody's text inside markdown of ours: it is given as it is, and cannot leave its place.

Agents read the text itself, programs the structure, and both must see the same. So the lines of
a text are indented below the list item that they belong to, and left alone. Where something in
them would go on after their end, or would read like a line of ours, all of it stands in a fence.

Hooks load this module: it imports nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LABELS = ("Tags:", "Rationale:", "Depends on:", "Superseded by:")
"""How the lines begin that we add below a text."""

HIDDEN = (
    *((0x00, 0x1F), (0x7F, 0x9F)),  # controls, which begin escape sequences
    *((0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)),  # direction
    *((0x200B, 0x200D), (0x2060, 0x2065), (0xFEFF, 0xFEFF), (0x180B, 0x180F)),  # no width
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5)),  # not drawn
    *((0x3164, 0x3164), (0xFFA0, 0xFFA0), (0x206A, 0x206F), (0xFFF9, 0xFFFB)),
    *((0x2028, 0x2029), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    *((0xFE00, 0xFE0E), (0xE0000, 0xE007F), (0xE0100, 0xE01EF)),  # variations and tags
)
"""First and last of each range of characters that a reader does not see, or that change how a
terminal shows the others. The variation selector of emoji is not among them."""

_MARKS = " \t>-+*0123456789.)"


def visible(text: str) -> str:
    """The text with hidden characters as escapes, such as `\\u202e`. Line ends and tabs stay.

    A reader must see what a program or a model reads.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    if not _ESCAPES:
        made = escapes(python_escape)
        del made[9], made[10]
        # In one step, because several threads may be here.
        _ESCAPES.update(made)
    return text.replace("\r\n", "\n").translate(_ESCAPES)


_ESCAPES: "dict[int, str]" = {}


def escapes(escape: "Callable[[int], str]") -> "dict[int, str]":
    """The hidden characters with their escapes, for `str.translate`."""
    return {code: escape(code) for first, last in HIDDEN for code in range(first, last + 1)}


def python_escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def without_comments(text: str) -> str:
    """The text, in which no comment begins: ours say where a context begins and ends."""
    return text.replace("<!--", "<\\!--")


def flat(text: str) -> str:
    """The text in one line."""
    return without_comments(" ".join(text.split()))


def code(text: str) -> str:
    """The text in one line, as inline code."""
    line = flat(text)
    marks = "`" * (_longest_run(line) + 1)
    padding = " " if line[:1] == "`" or line[-1:] == "`" else ""
    return f"{marks}{padding}{line}{padding}{marks}"


def contained(text: str) -> list[str]:
    """The lines of a text as they stand in an item: beside its label, and below it, indented.

    The first line is empty where nothing may stand beside the label.
    """
    # Whatever any reader takes for the end of a line is one.
    lines = without_comments(text).splitlines() or [""]
    if len(lines) > 1:
        if not _stays_inside(lines):
            fence = "`" * max(3, _longest_run(text) + 1)
            lines = ["", fence, *lines, fence]
        elif _fence(lines[0]):
            lines = ["", *lines]
    first, *more = lines
    return [first, *(f"  {line}" if line.strip() else "" for line in more)]


def quoted(text: str) -> list[str]:
    """The lines of a text that is data: in quotation marks, or in a fence if it has several."""
    lines = without_comments(text).splitlines() or [""]
    if len(lines) == 1:
        return [f'"{lines[0]}"']
    fence = "`" * max(3, _longest_run(text) + 1)
    return ["", *(f"  {line}" if line.strip() else "" for line in (fence, *lines, fence))]


def _stays_inside(lines: list[str]) -> bool:
    """Whether the end of these lines is the end of everything that begins in them.

    CommonMark decides; what is hard to decide counts as no.
    """
    opened = ""
    has_fence = has_list = False
    defines = any("]:" in line for line in lines)
    # What stands beside the label begins nothing but a fence, which is moved below it.
    for line in lines if _fence(lines[0]) else lines[1:]:
        fence = _fence(line)
        if opened:
            if fence.startswith(opened) and not line.strip(f" \t{opened[0]}"):
                opened = ""
            continue
        has_fence = has_fence or "```" in line or "~~~" in line
        if fence:
            opened = fence
            continue
        bare = line.lstrip(" \t")
        inner = bare.lstrip(_MARKS)
        is_list = inner != bare
        has_list = has_list or is_list
        if (
            bare.startswith("<")
            or (is_list and inner.startswith(LABELS))
            or (defines and inner.startswith("["))
        ):
            return False
    # A fence inside a list may end with the list; whether it does is hard to say.
    return not opened and not (has_fence and has_list)


def _fence(line: str) -> str:
    """The marks with which a line opens or closes a block of code; nothing if it does not."""
    # It stands two columns to the right of where it was, and tabs stop at every fourth.
    moved = f"  {line}".expandtabs(4)[2:] if "\t" in line else line
    bare = moved.lstrip(" ")
    mark = bare[:1]
    if mark not in ("`", "~") or len(moved) - len(bare) > 3:
        return ""
    rest = bare.lstrip(mark)
    marks = bare[: len(bare) - len(rest)]
    if len(marks) < 3 or (mark == "`" and "`" in rest):
        return ""
    return marks


def _longest_run(text: str) -> int:
    longest = 0
    while "`" * (longest + 1) in text:
        longest += 1
    return longest
