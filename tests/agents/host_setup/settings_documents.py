"""Generated settings files for property tests."""

import json
from typing import Any

from hypothesis import strategies as st

EVENTS = ("SessionStart", "Stop", "PreToolUse")


class Members(list[tuple[str, Any]]):
    """An object that can contain a key twice, as a file can."""


GAPS = ("", "", " ", "\n", "\r\n", "\n    ", "\t", "// a, {\n", "// b\r\n", "/* c ] */", "/*\n*/")
gaps = st.lists(st.sampled_from(GAPS), max_size=2).map("".join)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "x", "//", "/*", 'q"', "\\", "é\u2028", "\n"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(st.sampled_from(["a", "hooks", "é"]), inner), max_size=2).map(Members)
    ),
    max_leaves=5,
)
foreign_hooks = st.sampled_from(["make", "ctx status", "ctx hook"]).map(
    lambda command: Members([("type", "command"), ("command", command)])
)
groups = st.lists(foreign_hooks, max_size=2).map(
    lambda hooks: Members([("matcher", ""), ("hooks", hooks)])
)
events = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.lists(groups | scalars, max_size=2)), max_size=3
).map(Members)
roots = st.lists(
    st.tuples(st.just("hooks"), events) | st.tuples(st.sampled_from(["a", "permissions"]), values),
    max_size=3,
).map(Members)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A valid text with any layout."""
    root = draw(roots)
    mark = draw(st.sampled_from(["", "", "\ufeff"]))
    if draw(st.booleans()):
        indent = draw(st.sampled_from([None, 2, 4, "\t"]))
        end = draw(st.sampled_from(["", "\n"]))
        tidy = json.dumps(plain(root), indent=indent, ensure_ascii=draw(st.booleans())) + end
        return mark + tidy.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return mark + draw(gaps) + _written(draw, root) + draw(gaps)


def plain(value: Any) -> Any:
    """The parsed value: of several members with one key, the last counts."""
    if isinstance(value, Members):
        return {key: plain(inner) for key, inner in value}
    return [plain(item) for item in value] if isinstance(value, list) else value


def _written(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, Members):
        shown = [
            f"{draw(gaps)}{json.dumps(key)}{draw(gaps)}:{draw(gaps)}{_written(draw, inner)}"
            for key, inner in value
        ]
        return _between(draw, "{}", shown)
    if isinstance(value, list):
        return _between(draw, "[]", [draw(gaps) + _written(draw, item) for item in value])
    return json.dumps(value, ensure_ascii=False)


def _between(draw: st.DrawFn, brackets: str, shown: list[str]) -> str:
    parts = [part + draw(gaps) for part in shown]
    trailing = "," if parts and draw(st.integers(0, 3)) == 0 else ""
    return brackets[0] + ",".join(parts) + trailing + draw(gaps) + brackets[1]
