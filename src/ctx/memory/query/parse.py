"""From tokens to a tree of filters, or to words and the filters that must hold beside them.

The parser keeps its own stacks instead of calling itself: parentheses may be nested as deeply as
someone likes. What takes turns in truth is bounded, because the stack of SQLite's parser is.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from ctx.errors import QueryInvalid
from ctx.memory.query import filters
from ctx.memory.query.filters import PROJECT, Filter
from ctx.memory.query.syntax import FILTERS, Token, invalid, tokens

MOST_FILTERS = 500
DEEPEST = 12
"""How often `AND` and `OR` may take turns. Parentheses that change nothing do not count."""

_PRECEDENCE = {"(": 0, "or": 1, "and": 2, "not": 3}
_SPLIT_UP = "Ask in several steps."


class And(NamedTuple):
    """All of them; without any it is true."""

    parts: tuple["Expression", ...]


class Or(NamedTuple):
    """One of them; without any it is false."""

    parts: tuple["Expression", ...]


class Not(NamedTuple):
    part: "Expression"


Expression = Filter | And | Or | Not


class Query(NamedTuple):
    text: str
    mode: Literal["filters", "text"]
    tree: Expression | None
    """None where there are words alone."""
    words: str
    """What is left of the text without its filters; empty where there are filters alone."""
    names_project: bool
    """Whether it asks for projects itself, so that no other is left out of the answer."""


class _Operand(NamedTuple):
    expression: Expression
    depth: int


def parse(text: str) -> Query:
    found = tokens(text)
    if not found:
        raise QueryInvalid(
            "The query is empty.",
            hint="Write words to search for, or filters such as `type:fact AND tag:tier:pinned`.",
        )
    if any(token.kind == "word" for token in found):
        return _question(text, found)
    return Query(text, "filters", _tree(text, found), "", _names_project(found))


def parse_words(words: str, beside: Sequence[str] = ()) -> Query:
    """A search for all of these words, whatever they look like, beside filters that must hold."""
    found = [(text, token) for text in beside for token in tokens(text)]
    parts = tuple(filters.read(text, token) for text, token in found)
    names_project = _names_project(token for _, token in found)
    text = " ".join([*beside, words])
    return Query(text, "text", And(parts) if parts else None, words, names_project)


def _question(text: str, found: Sequence[Token]) -> Query:
    """Text in which only the filters that stand alone and are right count as such."""
    parts: list[Expression] = []
    counted: list[Token] = []
    words = ""
    end = 0
    known = [token for token in found if token.kind == "filter" and token.name in FILTERS]
    for token in known[:MOST_FILTERS]:
        before = text[end : token.start].rstrip("(")
        if before and not before[-1].isspace():
            continue  # `f(path:str)` is code.
        try:
            parts.append(filters.read(text, token))
        except QueryInvalid:
            continue
        counted.append(token)
        words += text[end : token.start]
        end = token.end
    tree = And(tuple(parts)) if parts else None
    return Query(text, "text", tree, words + text[end:], _names_project(counted))


def _names_project(found: Iterable[Token]) -> bool:
    return any(
        token.name == "project" or (token.name == "tag" and token.value.startswith(PROJECT))
        for token in found
    )


def _tree(text: str, found: Sequence[Token]) -> Expression:
    """The tree of a query without words: `NOT` binds before `AND`, and `AND` before `OR`."""
    operands: list[_Operand] = []
    operators: list[Token] = []
    count = 0
    previous: Token | None = None
    for token in found:
        is_whole = previous is not None and previous.kind in ("filter", ")")
        if is_whole and token.kind in ("filter", "not", "("):
            # What stands side by side must both hold.
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
    """Give the operators that bind at least as tightly as `kind` their operands."""
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
    """The error where a filter should stand between two tokens and does not."""
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
