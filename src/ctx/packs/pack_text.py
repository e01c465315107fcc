"""A pack as markdown for an agent, with the reason for each chunk.

    # Context for `Fix the timeout in Client.connect`

    Confidence 71 %. 3 chunks, 640 of 16,000 tokens.

    ## `src/net/client.py:12-40` `Client.connect`
    Found by text, names.

    ```py
    class Client:
        …
        def connect(self): …
    ```

Code is in a fence that is longer than any fence in it. Other text that ctx did not write is inline
code or a single line. So quoted text cannot end its block.
"""

import re
from collections.abc import Iterable, Sequence

from ctx import tokens
from ctx.markdown import code, flat
from ctx.memory import code_anchors, sources
from ctx.packs.prompt_pack import (
    Chunk,
    LeftOutChunk,
    PromptPack,
    RelatedItem,
    Signal,
    TokenBudget,
)
from ctx.redaction import redact

UNSURE = 0.5
"""Below this confidence, an agent is advised to search further."""

_LONGEST_TASK = 160
_LONGEST_TITLE = 120
_MOST_NAMED = 5
_FIGURES = 8
_LONGEST_FIGURES = TokenBudget(9_999_999, 9_999_999, 0)
_STRONG_SIGNAL_SHARE = 0.15
"""A signal below this share of the strongest one is not listed as a reason."""
ROOMY = 1_500
"""Smaller packs list neither what is related nor what was left out."""
BUDGET, UNLIKELY = "budget", "unlikely"
LEAST_PROBABILITY = 0.04
"""A pack ends before code that the task changes less likely than this."""
_ENDING = re.compile(r"\.([A-Za-z0-9+]{1,10})$")
_LABELS = {
    "CALLS": "called by",
    "USES_TYPE": "a type of",
    "IMPLEMENTS": "implemented by",
    "REFERENCES": "referred to by",
    "IMPORTS": "imported by",
    "<CALLS": "calls",
    "<USES_TYPE": "uses",
    "<IMPLEMENTS": "implements",
    "<REFERENCES": "refers to",
    "<IMPORTS": "imports",
    "MENTIONS": "mentioned by",
    "<MENTIONS": "mentions",
    "SUPERSEDES": "replaced by",
    "<SUPERSEDES": "replaces",
    "DEPENDS_ON": "needed by",
    "<DEPENDS_ON": "depends on",
    "DERIVED_FROM": "a source of",
    "<DERIVED_FROM": "made from",
    "RELATES_TO": "related to",
    "<RELATES_TO": "related to",
}


def as_markdown(pack: PromptPack) -> str:
    """The whole pack. It takes no more tokens than the pack reports."""
    return _pack_markdown(
        pack, [chunk_text(chunk) for chunk in pack.retrieved], _left_out_lines(pack)
    )


def with_reasons(pack: PromptPack) -> str:
    """The pack with all details: signals, graph paths, tokens, what was left out."""
    texts = [
        f"{chunk_text(chunk)}\n\n{_figures(chunk.relevance_score, chunk.signals)};"
        f" {chunk.tokens:,} tokens{_path_text(chunk.via)}."
        for chunk in pack.retrieved
    ]
    left_out = [
        f"- {code(_short(chunk.title))}: {chunk.reason};"
        f" score {chunk.relevance_score:.2f}, {chunk.tokens:,} tokens"
        for chunk in pack.left_out
    ]
    if pack.more_left_out:
        left_out.append(f"- and {pack.more_left_out:,} more")
    files = [f"- {code(file.path)}: {_figures(file.score, file.signals)}" for file in pack.files]
    return _pack_markdown(pack, texts, left_out, files)


def chunk_text(chunk: Chunk) -> str:
    """One chunk as it appears in a pack."""
    return "\n".join(
        [_heading(chunk), _chunk_reason(chunk), "", *fenced(chunk.snippet, chunk.path)]
    )


def cost(chunk: Chunk) -> int:
    """The tokens of a chunk in a pack."""
    return tokens.estimate(f"{chunk_text(chunk)}\n\n")


def with_cost(chunk: Chunk) -> Chunk:
    """The chunk with the number of its tokens."""
    return chunk._replace(tokens=cost(chunk))


def cost_of_frame(pack: PromptPack) -> int:
    """The tokens of a pack without its chunks. The reported usage is an upper bound."""
    return tokens.estimate(_pack_markdown(pack, [], _left_out_lines(pack)))


def most_for_frame(pack: PromptPack, titles: Iterable[str]) -> int:
    """The maximum of `cost_of_frame` for chunks with these titles, some of which may be left
    out."""
    longest = sorted(titles, key=lambda title: -tokens.estimate(_short(title)))[: _MOST_NAMED + 1]
    left_out = tuple(LeftOutChunk(title, 0, 0, "budget") for title in longest)
    files = tuple(sorted(pack.files, key=lambda file: -tokens.estimate(_short(file.path))))
    framed = pack._replace(left_out=left_out, unlikely=9_999_999, files=files)
    named = _left_out_lines(framed)
    framed = framed._replace(token_budget=_LONGEST_FIGURES)
    return tokens.estimate(_pack_markdown(framed, [], named)) + _FIGURES


def fenced(text: str, path: str | None = None) -> list[str]:
    longest = max(map(len, re.findall("`+", text))) if "`" in text else 0
    fence = "`" * max(3, longest + 1)
    ending = _ENDING.search(path) if path else None
    return [f"{fence}{ending[1] if ending else ''}", text, fence]


def _pack_markdown(
    pack: PromptPack,
    chunks: Iterable[str],
    left_out: Sequence[str],
    files: Sequence[str] = (),
) -> str:
    first = pack.task.strip().partition("\n")[0][:_LONGEST_TASK]
    parts = [f"# Context for {code(first or pack.task[:_LONGEST_TASK] or '…')}", _preamble(pack)]
    parts += chunks
    if pack.related:
        parts += ["## Related", "\n".join(map(related_line, pack.related))]
    if pack.recent_narrative:
        parts += ["## Recently", "\n".join(fenced(pack.recent_narrative))]
    if left_out:
        parts += ["## Left out", "\n".join(left_out)]
    if files:
        parts += ["## Files", "\n".join(files)]
    return "\n\n".join(parts) + "\n"


def related_line(item: RelatedItem) -> str:
    """An item as one line: where it is, its signature, and how it is related."""
    signature = code(_short(item.signature or item.name))
    return f"- {code(f'{item.path}:{item.line}')} {signature}: {reached_by(item.via)}"


def fit_related(related: Sequence[RelatedItem], most: int) -> tuple[RelatedItem, ...]:
    """As many as fit into `most` tokens, with their heading."""
    left = most - tokens.estimate("## Related\n\n\n\n")
    fitted = []
    for item in related:
        # A signature may contain values of constants and parameters.
        each = item._replace(signature=redact(item.signature).text)
        left -= tokens.estimate(f"{related_line(each)}\n")
        if left < 0:
            break
        fitted.append(each)
    return tuple(fitted)


def _preamble(pack: PromptPack) -> str:
    budget = pack.token_budget
    if not pack.retrieved and not pack.files and not pack.left_out:
        return "Nothing was found. Try other words, or names from the code."
    text = f"{len(pack.retrieved)} {'chunk' if len(pack.retrieved) == 1 else 'chunks'},"
    text += f" {budget.used:,} of {budget.total - budget.reserved_for_response:,} tokens."
    if not pack.files:
        return text
    text = f"Confidence {pack.confidence:.0%}. {text}"
    if pack.confidence < UNSURE:
        text += " The right place may be elsewhere: check it before you change anything, and look"
        text += " at the other files, or ask again with the names that the code uses."
    return text


def _heading(chunk: Chunk) -> str:
    if chunk.path is None or chunk.first_line is None:
        return f"## {flat(_short(chunk.title))}"
    place = f"{chunk.path}:{chunk.first_line}"
    if chunk.last_line not in (None, chunk.first_line):
        place += f"-{chunk.last_line}"
    name = f" {code(chunk.name)}" if chunk.name and chunk.name != chunk.path else ""
    return f"## {code(place)}{name}"


def _chunk_reason(chunk: Chunk) -> str:
    if chunk.via:
        reached = reached_by(chunk.via)
        return f"{reached[:1].upper()}{reached[1:]}.{_source(chunk)}"
    strongest = sorted(chunk.signals, key=lambda signal: -signal.value)
    names = [
        signal.name
        for signal in strongest
        if signal.value >= _STRONG_SIGNAL_SHARE * strongest[0].value
    ]
    return (f"Found by {', '.join(names)}." if names else "Found.") + _source(chunk)


def reached_by(via: Sequence[str]) -> str:
    label, origin = via[-2], via[-3]
    reason = _LABELS.get(label, f"{label.lstrip('<').lower()} of")
    return f"{reason} {code(_short(origin))}"


def _source(chunk: Chunk) -> str:
    """The author, unless it is the user or a file that the heading names, and what has become of
    the code that the text is about."""
    is_plain = chunk.path is not None or chunk.source in ("", sources.USER)
    source = "" if is_plain else f" Source: {chunk.source}."
    changed = code_anchors.describe(chunk.anchors)
    return f"{source} {flat(changed)}." if changed else source


def _figures(score: float, signals: Sequence[Signal]) -> str:
    parts = [f"{signal.name} {signal.value:.2f}" for signal in signals]
    return f"score {score:.2f}" + (f" ({', '.join(parts)})" if parts else "")


def _path_text(via: Sequence[str]) -> str:
    return f"; by way of {' → '.join(code(_short(name)) for name in via)}" if via else ""


def _left_out_lines(pack: PromptPack) -> list[str]:
    """The best chunks that did not fit or are unlikely, and the files that come next."""
    if pack.token_budget.total - pack.token_budget.reserved_for_response < ROOMY:
        return []
    lost = [chunk for chunk in pack.left_out if chunk.reason in (BUDGET, UNLIKELY)]
    lines = [f"- {code(_short(chunk.title))}" for chunk in lost[:_MOST_NAMED]]
    if len(lost) > _MOST_NAMED:
        lines.append(f"- and {len(lost) - _MOST_NAMED} more")
    if pack.unlikely:
        lines.append(
            f"- below {LEAST_PROBABILITY:.0%}: {pack.unlikely:,} in all, see `ctx pack --more`"
        )
    shown = {chunk.path for chunk in pack.retrieved}
    further = [code(_short(file.path)) for file in pack.files if file.path not in shown][
        :_MOST_NAMED
    ]
    if further:
        lines.append(f"- further files, by rank: {', '.join(further)}")
    return lines


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"
