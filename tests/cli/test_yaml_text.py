"""YAML as somebody else reads it."""

from typing import Any

import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from ctx.cli.yaml_text import as_yaml

LINES = st.lists(
    st.one_of(st.text(), st.sampled_from(["", " ", "  a", "\tb", "- c", "d: e", "# f", "---"])),
    max_size=5,
)
TEXTS = st.one_of(st.text(), LINES.map("\n".join))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS)
KEYS = st.one_of(st.text(), st.sampled_from(["yes", "null", "010", "title", "12:30:45", "=", "<<"]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@given(VALUES)
def test_what_was_written_is_read_again(value: Any) -> None:
    assert yaml.load(as_yaml(value), yaml.SafeLoader) == value


def test_how_it_looks() -> None:
    value: dict[str, Any] = {
        "task": "Fix it: now",
        "retrieved": [
            {"title": "src/net.py", "snippet": "def connect():\n    return 1\n", "tokens": 12},
            {"title": "yes", "snippet": "  indented\n\nafter", "score": 0.95, "via": []},
        ],
        "receipt": None,
        "01M7": {},
    }
    assert as_yaml(value) == (
        'task: "Fix it: now"\n'
        "retrieved:\n"
        '  - title: "src/net.py"\n'
        "    snippet: |2\n"
        "      def connect():\n"
        "          return 1\n"
        "    tokens: 12\n"
        '  - title: "yes"\n'
        "    snippet: |2-\n"
        "        indented\n"
        "\n"
        "      after\n"
        "    score: 0.95\n"
        "    via: []\n"
        "receipt: null\n"
        '"01M7": {}\n'
    )
