"""The output of `ctx query` for a pack.

People see an overview: where to look, and how each place begins. Agents get all of it as markdown,
programs get JSON.
"""

from collections.abc import Sequence

from ctx import tokens
from ctx.cli.output import Block, Line, Markdown, Table, VerbatimText, age_text, count
from ctx.codebase.index_state import IndexState
from ctx.packs.pack_text import LEAST_PROBABILITY, as_markdown, reached_by
from ctx.packs.prompt_pack import Chunk, PromptPack, Signal

_LINES = 4
"""Lines of a chunk in the overview: enough to recognise it."""
_LINE = 120
_MOST_FILES = 10
_MOST_LEFT_OUT = 20
_UNSURE = 0.5


def render(pack: PromptPack) -> list[Block]:
    blocks: list[Block] = [Line(_head(pack)), *_warnings(pack)]
    for chunk in pack.retrieved:
        blocks += [Line(""), Line(_place(chunk), "heading"), Line(f"  {_reason(chunk)}", "dim")]
        blocks.append(VerbatimText(_first_chunk_lines(chunk.snippet)))
    blocks += [*_related(pack), *_recently(pack)]
    if pack.left_out:
        left_out = len(pack.left_out) + pack.more_left_out
        more = count(left_out, "more result", "more results")
        least = percent(LEAST_PROBABILITY)
        unlikely = f"; below {least}: {pack.unlikely:,} (--more)" if pack.unlikely else ""
        blocks += [Line(""), Line(f"{more} left out (--explain){unlikely}.", "dim")]
    return blocks


def render_explained(pack: PromptPack) -> list[Block]:
    blocks: list[Block] = [Line(_head(pack)), *_warnings(pack)]
    for chunk in pack.retrieved:
        line = f"  {chunk.tokens:,} tokens, score {chunk.relevance_score:.2f}"
        blocks += [
            Line(""),
            Line(_place(chunk), "heading"),
            Line(f"{line}: {sums(chunk.signals)}" if chunk.signals else line),
        ]
        if chunk.via:
            blocks.append(Line(f"  by way of {path_text(chunk.via)}"))
    blocks += [*_related(pack), *_recently(pack)]
    if pack.files:
        rows = [
            (file.path, f"{file.score:.2f}", sums(file.signals))
            for file in pack.files[:_MOST_FILES]
        ]
        blocks += [Line(""), Line("Files by rank", "heading")]
        blocks.append(Table(("file", "score", "signals"), rows, ("", "number", "")))
    blocks += _expansion(pack)
    if pack.left_out:
        left_out = [
            (each.title, f"{each.tokens:,} tokens", f"{each.relevance_score:.2f}", each.reason)
            for each in pack.left_out
        ]
        blocks += left_out_rows(left_out, pack.more_left_out)
    return blocks


def left_out_rows(rows: Sequence[tuple[str, str, str, str]], more: int = 0) -> list[Block]:
    """What was found but is not in the pack; `ctx why` uses it too."""
    headings = ("left out", "tokens", "score", "reason")
    more += max(0, len(rows) - _MOST_LEFT_OUT)
    blocks: list[Block] = [Line(""), Line("Left out", "heading")]
    blocks.append(Table(headings, rows[:_MOST_LEFT_OUT], ("text", "number", "number", "")))
    return [*blocks, Line(f"  … and {more:,} more", "dim")] if more else blocks


def _related(pack: PromptPack) -> list[Block]:
    if not pack.related:
        return []
    lines = [
        f"  {each.path}:{each.line}  {each.name}, {reached_by(each.via)}" for each in pack.related
    ]
    return [Line(""), Line("Related", "heading"), *map(Line, lines)]


def _recently(pack: PromptPack) -> list[Block]:
    if not pack.recent_narrative:
        return []
    return [Line(""), Line(recent_log_text(tokens.estimate(pack.recent_narrative)), "dim")]


def recent_log_text(cost: int) -> str:
    """Whether the recent log is included."""
    return f"Recent log: {cost:,} tokens."


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def sums(signals: Sequence[Signal] | Sequence[tuple[str, float]]) -> str:
    """A score as a sum: `text 0.61 + path 0.20`."""
    return " + ".join(f"{name} {value:.2f}" for name, value in signals)


def path_text(via: Sequence[str]) -> str:
    """A path through the graph, names and edges in turn; `<CALLS` is followed backwards."""
    return "".join(
        each
        if not number % 2
        else (f" ← {each[1:]} ── " if each.startswith("<") else f" ── {each} → ")
        for number, each in enumerate(via)
    )


def saved_text(pack: PromptPack, path: str) -> str:
    return f"Wrote {_amount(pack)} to {path}."


def render_markdown(pack: PromptPack) -> list[Block]:
    return [Markdown(as_markdown(pack))]


def render_markdown_explained(pack: PromptPack) -> list[Block]:
    from ctx.packs.pack_text import with_reasons

    return [Markdown(with_reasons(pack))]


def _head(pack: PromptPack) -> str:
    if not pack.retrieved:
        return "Nothing found."
    # Without files the confidence means nothing.
    return f"{_amount(pack)}." + (f" Confidence {percent(pack.confidence)}." if pack.files else "")


def _amount(pack: PromptPack) -> str:
    budget = pack.token_budget
    free = budget.total - budget.reserved_for_response
    return f"{count(len(pack.retrieved), 'chunk')}, {budget.used:,} of {free:,} tokens"


def _warnings(pack: PromptPack) -> list[Block]:
    warnings = [state(pack.code_index)]
    if pack.files and pack.confidence < _UNSURE:
        warnings.append("Low confidence. Name a file or function to sharpen it.")
    return [Line(line, "dim") for line in warnings if line]


def state(index: IndexState) -> str:
    """A note if the code index is not up to date."""
    match index.state:
        case "scanned":
            return (
                "There is no code index yet. This is from a quick scan; the index is being built."
            )
        case "as it was" | "busy" | "not writable" if index.refreshed_at:
            return f"The code index is {age_text(index.refreshed_at)} old."
        case "refused":
            return "The code is not included: git failed. See `git status`."
        case "not writable":
            return (
                "There is no code index, and it cannot be written here. This is from a quick scan."
            )
        case _:
            return ""


def _expansion(pack: PromptPack) -> list[Block]:
    context = pack.graph_context
    if not context.seed_nodes:
        return []
    steps = f"{context.expansion_depth} {'step' if context.expansion_depth == 1 else 'steps'}"
    cycles = ", cycles taken as one" if context.scc_dag_used else ""
    rows = [
        ("seeds", ", ".join(context.seed_nodes)),
        ("reached", ", ".join(context.expanded_nodes) or "nothing"),
    ]
    return [
        Line(""),
        Line(f"Through the graph, {steps}{cycles}", "heading"),
        Table(("", ""), rows, ("field", "")),
    ]


def _place(chunk: Chunk) -> str:
    """The position of a chunk, as editors and terminals recognise it."""
    if chunk.path is None or chunk.first_line is None:
        return chunk.title
    place = f"{chunk.path}:{chunk.first_line}"
    return f"{place}  {chunk.name}" if chunk.name else place


def _reason(chunk: Chunk) -> str:
    parts = [f"{chunk.tokens:,} tokens"]
    if chunk.signals:
        strongest = sorted(chunk.signals, key=lambda signal: -signal.value)
        parts.append("by " + ", ".join(signal.name for signal in strongest[:3]))
    if chunk.via:
        parts.append(f"by way of {path_text(chunk.via)}")
    return "; ".join(parts)


def _first_chunk_lines(snippet: str) -> str:
    """The first lines of a chunk, without opening braces."""
    lines = [line for line in snippet.split("\n") if line.strip()]
    shown = [f"    {_shortened(line.rstrip())}" for line in lines[:_LINES]]
    more = len(lines) - len(shown)
    if more:
        shown.append(f"    … {count(more, 'more line')}")
    return "".join(f"{line}\n" for line in shown)


def _shortened(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[: _LINE - 1]}…"
