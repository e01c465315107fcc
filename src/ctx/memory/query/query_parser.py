"""Parses tokens to a tree of filters, or to words with filters that must match.

The parser uses explicit stacks instead of recursion, so parentheses can be nested to any depth. The
depth of alternating operators is limited, because the stack of SQLite's parser is.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ctx.errors import QueryInvalid
from ctx.memory.query import filters
from ctx.memory.query.filters import PROJECT, TASK, Filter
from ctx.memory.query.syntax import FILTERS, Token, invalid, tokens

MOST_FILTERS = 500
DEEPEST = 12
"""The maximum depth of alternating `AND` and `OR`. Redundant parentheses do not count."""

_PRECEDENCE = {"(": 0, "or": 1, "and": 2, "not": 3}
_SPLIT_UP = "Ask in several steps."


class And(NamedTuple):
    """All parts must match; true without parts."""

    parts: tuple["Expression", ...]


class Or(NamedTuple):
    """One part must match; false without parts."""

    parts: tuple["Expression", ...]


class Not(NamedTuple):
    part: "Expression"


Expression = Filter | And | Or | Not


class Query(NamedTuple):
    text: str
    mode: Literal["filters", "text"]
    tree: Expression | None
    """None if there are only words."""
    words: str
    """The text without its filters; empty if there are only filters."""
    names_project: bool
    """Whether it filters by project itself, so that the scope's project does not apply."""
    names_task: bool = False
    """Whether it filters by task itself."""


class _Operand(NamedTuple):
    expression: Expression
    depth: int


def parse(text: str) -> Query:
    query_tokens = tokens(text)
    if not query_tokens:
        raise QueryInvalid(
            "The query is empty.",
            hint="Write words to search for, or filters such as `type:fact AND tag:tier:pinned`.",
        )
    if any(token.kind == "word" for token in query_tokens):
        return _question(text, query_tokens)
    return Query(
        text,
        "filters",
        _tree(text, query_tokens),
        "",
        _names_project(query_tokens),
        _names_task(query_tokens),
    )


def refuse_unknown_types(text: str) -> None:
    """Raise QueryInvalid for a type that does not exist, also among words, where `parse` takes it
    for one of them. In quotes it is one."""
    for run in _runs(text, tokens(text)):
        for token in run:
            if token.kind == "filter" and token.name == "type":
                filters.read(text, token)


def parse_words(words: str, beside: Sequence[str] = ()) -> Query:
    """A search for these words, taken literally, with filters that must match."""
    query_tokens = [(text, token) for text in beside for token in tokens(text)]
    parts = tuple(filters.read(text, token) for text, token in query_tokens)
    beside_them = [token for _, token in query_tokens]
    names = _names_project(beside_them), _names_task(beside_them)
    text = " ".join([*beside, words])
    return Query(text, "text", And(parts) if parts else None, words, *names)


def _question(text: str, query_tokens: Sequence[Token]) -> Query:
    """A text in which only valid filters that stand alone count as filters.

    `NOT`, `OR` and parentheses are operators only between filters that stand together: `NOT
    type:fact pin` excludes facts. Everywhere else they are ordinary words.
    """
    parts: list[Expression] = []
    counted: list[Token] = []
    words = ""
    end = 0
    for run in _runs(text, query_tokens):
        if len(counted) + len(run) > MOST_FILTERS:
            break
        expression = _expression(text, run)
        if expression is not None:
            parts.append(expression)
            counted += run
            words += text[end : run[0].start]
            end = run[-1].end
    tree = And(tuple(parts)) if parts else None
    names = _names_project(counted), _names_task(counted)
    return Query(text, "text", tree, words + text[end:], *names)


def _runs(text: str, query_tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Filters with the operators between and around them. If the operators are invalid, each filter
    alone."""
    run: list[Token] = []
    for token in (*query_tokens, Token("word", len(text), len(text))):
        # `f(path:str)` is code, and `and` and `or` are words of every text.
        is_glued = (
            token.start > 0
            and not text[token.start - 1].isspace()
            and not (run and run[-1].kind == "(" and run[-1].end == token.start)
        )
        known = token.kind == "filter" and token.name in FILTERS and not is_glued
        spelt = text[token.start : token.end]
        operator = token.kind == "not" or (token.kind in ("and", "or") and spelt.isupper())
        opening = token.kind == "(" and not is_glued
        if known or operator or opening or (token.kind == ")" and run):
            run.append(token)
            continue
        while run and run[0].kind in ("and", "or"):
            run.pop(0)
        while run and run[-1].kind not in ("filter", ")"):
            run.pop()
        filters_alone = [token for token in run if token.kind == "filter"]
        if filters_alone:
            whole = len(filters_alone) < len(run) and _expression(text, run) is not None
            yield from [run] if whole else [[token] for token in filters_alone]
        run = []


def _expression(text: str, run: Sequence[Token]) -> Expression | None:
    try:
        return _tree(text, run)
    except QueryInvalid:
        return None


def _names_project(query_tokens: Iterable[Token]) -> bool:
    return any(
        token.name == "project" or (token.name == "tag" and token.value.startswith(PROJECT))
        for token in query_tokens
    )


def _names_task(query_tokens: Iterable[Token]) -> bool:
    return any(token.name == "tag" and token.value.startswith(TASK) for token in query_tokens)


def _tree(text: str, query_tokens: Sequence[Token]) -> Expression:
    """The tree of a query without words: `NOT` binds before `AND`, and `AND` before `OR`."""
    operands: list[_Operand] = []
    operators: list[Token] = []
    count = 0
    previous: Token | None = None
    for token in query_tokens:
        is_whole = previous is not None and previous.kind in ("filter", ")")
        if is_whole and token.kind in ("filter", "not", "("):
            # Adjacent filters must both match.
            _join(text, operands, operators, "and")
            operators.append(token._replace(kind="and"))
        elif not is_whole and token.kind in ("and", "or", ")"):
            raise _incomplete(text, previous, token)
        match token.kind:
            case "filter":
                count += 1
                if count > MOST_FILTERS:
                    sentence = f"There are more than {MOST_FILTERS} filters."
                    raise invalid(text, token.start, token.end, sentence, _SPLIT_UP)
                operands.append(_Operand(filters.read(text, token), 0))
            case "and" | "or":
                _join(text, operands, operators, token.kind)
                operators.append(token)
            case ")":
                _join(text, operands, operators, "or")
                if not operators:
                    sentence = "This parenthesis closes nothing."
                    raise invalid(text, token.start, token.end, sentence, None)
                operators.pop()
            case _:
                operators.append(token)
        previous = token
    if previous is None or previous.kind not in ("filter", ")"):
        raise _incomplete(text, previous, None)
    _join(text, operands, operators, "or")
    if operators:
        opening = operators[-1]
        sentence = "This parenthesis is not closed."
        raise invalid(text, opening.start, opening.end, sentence, None)
    return operands[0].expression


def _join(text: str, operands: list[_Operand], operators: list[Token], kind: str) -> None:
    """Apply the operators that bind at least as tightly as `kind`."""
    while operators and _PRECEDENCE[operators[-1].kind] >= _PRECEDENCE[kind]:
        operator = operators.pop()
        right = operands.pop()
        if operator.kind == "not":
            inner = right.expression
            negated = inner.part if isinstance(inner, Not) else Not(inner)
            operands.append(_Operand(negated, right.depth))
            continue
        joined = And if operator.kind == "and" else Or
        parts: tuple[Expression, ...] = ()
        depth = 0
        for side in (operands.pop(), right):
            if isinstance(side.expression, joined):
                parts += side.expression.parts
                depth = max(depth, side.depth)
            else:
                parts += (side.expression,)
                depth = max(depth, side.depth + 1)
        if depth > DEEPEST:
            sentence = f"AND and OR take turns more than {DEEPEST} levels deep."
            raise invalid(text, operator.start, operator.end, sentence, _SPLIT_UP)
        operands.append(_Operand(joined(parts), depth))


def _incomplete(text: str, previous: Token | None, token: Token | None) -> QueryInvalid:
    """The error for a missing filter between two tokens."""
    if previous is not None and previous.kind != "(":
        word = text[previous.start : previous.end].upper()
        sentence = f"`{word}` has nothing after it."
        return invalid(text, previous.start, previous.end, sentence, None)
    if token is not None and token.kind != ")":
        word = text[token.start : token.end].upper()
        return invalid(text, token.start, token.end, f"`{word}` has nothing before it.", None)
    if previous is None:
        assert token is not None, "there are tokens"
        sentence = "This parenthesis closes nothing."
        return invalid(text, token.start, token.end, sentence, None)
    if token is None:
        sentence = "This parenthesis is not closed."
        return invalid(text, previous.start, previous.end, sentence, None)
    sentence = "There is nothing between these parentheses."
    return invalid(text, previous.start, token.end, sentence, None)
