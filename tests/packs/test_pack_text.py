"""A pack as markdown."""

import re

from hypothesis import given
from hypothesis import strategies as st

from ctx import tokens
from ctx.codebase.index_state import IndexState
from ctx.packs import pack_text
from ctx.packs.prompt_pack import (
    Chunk,
    GraphContext,
    LeftOutChunk,
    PackFile,
    PromptPack,
    Signal,
    TokenBudget,
)

CODE = Chunk(
    title="src/net.py: Client.connect",
    object_id="ab12",
    snippet="class Client:\n    …\n    def connect(self):\n        return 1",
    relevance_score=0.9,
    chunk_kind="FileContent",
    tokens=60,
    path="src/net.py",
    first_line=12,
    last_line=14,
    name="net.Client.connect",
    signals=(Signal("path", 0.2), Signal("text", 0.7)),
    via=(),
)
CALLED = CODE._replace(
    title="src/net.py: net.send",
    snippet="def send(text)",
    relevance_score=0.4,
    tokens=40,
    first_line=20,
    last_line=20,
    name="net.send",
    signals=(Signal("graph", 0.4),),
    via=("net.Client.connect", "CALLS", "net.send"),
)
DECISION = Chunk(
    "Decision by Eve: Use `jitter`",
    *("01HQ", "Because.", 0.3, "Decision", 30, None, None, None, "01HQ"),
    signals=(Signal("text", 0.3),),
    via=(),
)
PACK = PromptPack(
    task="Fix `connect`\n\nIt hangs.",
    head_commit=None,
    retrieved=(CODE, CALLED, DECISION),
    graph_context=GraphContext((), (), 2, True),
    recent_narrative="## 2026-01-20\n\n- Nothing",
    token_budget=TokenBudget(16_000, 640, 0),
    confidence=0.45,
    files=(PackFile("src/net.py", 1.0, (Signal("text", 1.0),)),),
    left_out=(
        LeftOutChunk("src/a.py: run", 0.2, 900, "budget"),
        LeftOutChunk("src/b.py: run", 0.01, 9, "below the threshold"),
    ),
    code_index=IndexState("fresh", None, 3, 4),
    receipt=None,
)


def test_a_pack_has_the_expected_text() -> None:
    assert (
        pack_text.as_markdown(PACK)
        == """\
# Context for `` Fix `connect` ``

Confidence 45%. 3 chunks, 640 of 16,000 tokens. The right place may be elsewhere: check it before \
you change anything, and look at the other files, or ask again with the names that the code uses.

## `src/net.py:12-14` `net.Client.connect`
Found by text, path.

```py
class Client:
    …
    def connect(self):
        return 1
```

## `src/net.py:20` `net.send`
Called by `net.Client.connect`.

```py
def send(text)
```

## Decision by Eve: Use `jitter`
Found by text.

```
Because.
```

## Recently

```
## 2026-01-20

- Nothing
```

## Left out

- `src/a.py: run`
"""
    )


def test_reasons_show_scores_signals_and_paths() -> None:
    text = pack_text.with_reasons(PACK)
    assert "score 0.90 (path 0.20, text 0.70); 60 tokens." in text
    assert (
        "score 0.40 (graph 0.40); 40 tokens;"
        " by way of `net.Client.connect` → `CALLS` → `net.send`." in text
    )
    assert "- `src/b.py: run`: below the threshold; score 0.01, 9 tokens" in text
    assert text.endswith("## Files\n\n- `src/net.py`: score 1.00 (text 1.00)\n")


@given(st.text(alphabet="`~#\n\r<>!-ab \t日", max_size=80), st.text(max_size=40))
def test_text_cannot_leave_its_place(snippet: str, name: str) -> None:
    chunk = CODE._replace(snippet=snippet, title=name, name=name, path=f"{name}.py")
    lines = pack_text.chunk_text(chunk).split("\n")
    assert lines[0].startswith("## ")
    fence = lines[3]
    marks = re.match("`+", fence)
    assert marks is not None
    # The fence that was opened is closed by the last line, and by none before it.
    assert lines[-1] == marks[0]
    inside = re.split("\n|\r", "\n".join(lines[4:-1]))
    assert not any(line.strip().startswith(marks[0]) for line in inside)


@given(st.text(max_size=300))
def test_the_cost_of_a_chunk_covers_its_text(snippet: str) -> None:
    chunk = CODE._replace(snippet=snippet)
    assert pack_text.cost(chunk) >= tokens.estimate(pack_text.chunk_text(chunk))
