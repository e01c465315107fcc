"""The kinds of faults, and where a statement has a place for one.

Each kind is something that hurts. What often changes nothing that anybody can observe is left out:
limits of time and scores, logs, caches, and the closing of what is closed anyway.
"""

import ast
import copy
import re
from collections.abc import Iterator
from typing import Any

COMPARISON = "a comparison turned round"
WRITE = "a write left out"
LOCK = "a lock, transaction or fsync skipped"
CHECK = "a check of secrets or trust passed over"
LIMIT = "a limit off by one"
BRANCH = "a wrong branch in what is shown"
ERROR = "an error not raised"
KINDS = (COMPARISON, WRITE, LOCK, CHECK, LIMIT, BRANCH, ERROR)

_SHOWS = re.compile(
    r"(cli|context|mcp|page)/|.*[:._](as_)?(text|render|lines?|show|print|html|markdown)s?(_\w+)?$"
)
"""The modules and functions that show something to a person or an agent."""

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_NEXT: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_LOCKS = re.compile(
    r"_?(hold\w*|try_hold\w*|lock\w*|_lock\w*|transaction|\w*writing|savepoint"
    r"|fsync\w*|sync_folder|sync_file|flock|commit)"
)
_CLEANS = re.compile(
    r"_?(redacted|scrubbed(_value|_json|_path)?|without_secrets|contained|escaped?|quoted?)"
)
_ALLOWS = re.compile(r"\w*(trusted|trusts|allowed|verified|is_valid|is_safe)")
_FORBIDS = re.compile(
    r"\w*(untrusted|withheld|secrets?|forbidden|forged|refused|hostile)|redact(ed)?\.findings"
)
_NO_WRITE = re.compile(
    r"_?(\w*log\w*|debug|info|warning|close|clear|cache_clear|flush|sleep|collect|freeze|kill"
    r"|add_argument|set_defaults|add_parser|__init__|\w*progress\w*|notify\w*|join|wait|shutdown"
    r"|terminate|cancel|simplefilter|tick|checkpoint)"
)
_INEXACT = re.compile(r"time|_ms\b|_s\b|seconds|moment|deadline|age|score|weight|share|ratio|clock")
_UNREACHABLE = frozenset({"AssertionError", "NotImplementedError", "StopIteration", "SystemExit"})


INSIDE = frozenset({"body", "orelse"})
"""The fields of a statement with other statements."""


def head(statement: ast.stmt) -> ast.stmt:
    """A statement without the statements inside it."""
    fields = dict(ast.iter_fields(statement))
    if "body" in fields:
        fields["body"] = [ast.Expr(ast.Constant(...))]
    if "orelse" in fields:
        fields["orelse"] = []
    return ast.copy_location(type(statement)(**fields), statement)


def changes(statement: ast.stmt, function: str) -> Iterator[tuple[str, ast.stmt]]:
    """Each kind of fault that a statement has a place for, and the head of the changed one.

    `function` is the module and the name of the function.
    """
    before = head(statement)
    for kind, changed in (*_whole(before), *_inside(before)):
        if kind != BRANCH or _SHOWS.match(function):
            yield kind, changed


def _inside(before: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    conditions = {id(node) for each in ast.walk(before) for node in _conditions(each)}
    for place, node in enumerate(ast.walk(before)):
        for kind, after in _within(node, is_condition=id(node) in conditions):
            changed = copy.deepcopy(before)
            target = list(ast.walk(changed))[place]
            yield kind, _Replace(target, after).visit(changed)


class _Replace(ast.NodeTransformer):
    def __init__(self, target: ast.AST, after: ast.expr) -> None:
        self._target = target
        self._after = after

    def visit(self, node: ast.AST) -> Any:
        return self._after if node is self._target else self.generic_visit(node)


def _whole(before: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    match before:
        case ast.Expr(ast.Call(func=called)) | ast.Expr(ast.Await(ast.Call(func=called))):
            name = _name(called)
            if _LOCKS.fullmatch(name):
                yield LOCK, ast.Pass()
            elif not _NO_WRITE.fullmatch(name):
                yield WRITE, ast.Pass()
        case ast.Assign(targets=[ast.Subscript()]):
            yield WRITE, ast.Pass()
        case ast.With(items=items, body=body):
            for place, item in enumerate(items):
                if item.optional_vars is None and _LOCKS.fullmatch(_name(item.context_expr)):
                    others = [*items[:place], *items[place + 1 :]]
                    without = ast.With(others, body) if others else ast.If(_true(), body, [])
                    yield LOCK, without
        case ast.If(test=test, body=body):
            yield BRANCH, ast.If(ast.UnaryOp(ast.Not(), test), body, [])
        case ast.Raise(exc=error):
            if _name(error) not in _UNREACHABLE:
                yield ERROR, ast.Pass()


def _within(node: ast.AST, *, is_condition: bool) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            yield COMPARISON, ast.Compare(left, [_OPPOSITE[type(operator)]()], [right])
            if type(operator) in _NEXT and not _INEXACT.search(ast.unparse(node)):
                yield LIMIT, ast.Compare(left, [_NEXT[type(operator)]()], [right])
        case ast.Slice(lower=lower, upper=ast.Name() | ast.Attribute() as upper, step=None):
            yield LIMIT, ast.Slice(lower, ast.BinOp(upper, ast.Add(), ast.Constant(1)))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
            if not _INEXACT.search(ast.unparse(node)):
                yield LIMIT, left
        case ast.Attribute(value=ast.Call(args=[first, *_]) as call, attr="text"):
            if _name(call) == "redact":
                yield CHECK, first
        case ast.Call(func=ast.Attribute(value=ast.Name("re"))):
            # Escaping a pattern protects nobody.
            return
        case ast.Call(args=[first, *_]) if _CLEANS.fullmatch(_name(node)):
            yield CHECK, node.args[-1] if _name(node) == "without_secrets" else first
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield BRANCH, ast.IfExp(test, orelse, body)
    if is_condition and _ALLOWS.fullmatch(_name(node)):
        yield CHECK, _true()
    elif is_condition and _FORBIDS.fullmatch(_name(node)):
        yield CHECK, ast.Constant(False)


def _conditions(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            return [test]
        case ast.BoolOp(values=values):
            return values
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return [operand]
        case ast.comprehension(ifs=ifs):
            return ifs
    return []


def _name(node: ast.AST | None) -> str:
    """The last name of what is called or read."""
    match node:
        case ast.Call(func=function):
            return _name(function)
        case ast.Attribute(value=value, attr="findings"):
            return f"{_name(value)}.findings"
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _true() -> ast.expr:
    return ast.Constant(True)
