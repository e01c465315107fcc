"""Compiles a query, a scope and the time to one SQL statement.

SQLite chooses a query plan by heuristics, or by statistics that may be missing or outdated. The
statements fix the plan instead, so that it is the same for every store:

1. The *candidates*: ids in descending order, read from indexes only. Tags and types are read in
   this order. `UNION`, `INTERSECT` and `EXCEPT` merge such streams without storing anything, so
   the first id is available at once. A filter that matches few nodes is read and sorted, and is
   not merged with others. If no filter can do either, all nodes are candidates.
2. The *conditions*: everything else, looked up for each candidate.

The caller can name tags that few nodes have. If every match must have such a tag, its nodes are the
candidates, and nothing is merged.

The candidates are a subquery with `LIMIT -1`. That keeps SQLite from dropping the subquery's order,
which becomes the order of the whole statement. An `ORDER BY` of the statement itself would sort
everything again. A statement also ends in `LIMIT -1`, so that it can be a subquery. A unary plus
before a column keeps SQLite from using an index for it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ctx import clock
from ctx.memory import model
from ctx.memory.query import conditions, tsvector_search
from ctx.memory.query.conditions import Dialect, SqlFragment, condition, join_fragments
from ctx.memory.query.filters import (
    PROJECT,
    TASK,
    HasFilter,
    IdFilter,
    LinkedFrom,
    LinkedTo,
    OtherNameFilter,
    PathFilter,
    SessionFilter,
    TagFilter,
    TagPrefixFilter,
    TypeFilter,
)
from ctx.memory.query.query_parser import And, Expression, Not, Or, Query
from ctx.memory.query.time_filters import TimeFilter
from ctx.memory.query.tsvector_search import SearchTerm, TermGroups

MOST_WORDS = 32
"""The maximum number of words of a question; later words are ignored."""

_SUPERSEDED = HasFilter("superseded")
_TRUE = And(())
_FALSE = Or(())

# Filters by the number of nodes that they usually match, fewest first. From `_SORTED` on, they
# return ids in order. Those after it are used only if there is nothing else.
_SORTED = 5
_ORDER: Mapping[type, int] = {
    IdFilter: 0,
    LinkedFrom: 1,
    LinkedTo: 1,
    SessionFilter: 2,
    PathFilter: 4,
    TagFilter: 5,
    TypeFilter: 5,
}
_NARROW_TIME, _MANY = 3, 6
# Namespaces in which nearly every node has a tag.
_EVERYWHERE = (PROJECT, "tier:", "session:", "kind:")
# With more streams than this, sorting once is faster than merging each with all before it.
_MOST_MERGED = 8
# PostgreSQL compares the orders in which tables can be joined.
_MOST_JOINED = 3
# Statistics might make SQLite prefer a larger index on the same column.
_ROW = "nodes AS r INDEXED BY idx_nodes_row ON r.id = n.id"
_PROJECTS = (
    "tags AS p INDEXED BY idx_tags_project"
    " ON p.node_id = n.id AND p.tag >= 'project:' AND p.tag < 'project;'"
)


class Scope(NamedTuple):
    """What is visible, in addition to the query's own filters."""

    include_superseded: bool = False
    """Whether superseded nodes are visible. With `has:superseded` they always are."""
    project: str | None = None
    """Hide the nodes of other projects. A node belongs to all projects that it is tagged with, and
    a node without such a tag to every project."""
    only_project: bool = False
    """Hide also the nodes of no project."""
    task: str | None = None
    """Hide the working nodes of other tasks."""
    session: str = ""
    """Nodes of this session are visible, whichever project they name."""


class SqlStatement(NamedTuple):
    sql: str
    parameters: tuple[str | int, ...] = ()


class SearchWords(NamedTuple):
    """The words of a question that a node must have."""

    groups: tuple[tuple[str, ...], ...]
    """The alternatives of each word, from `terms.alternatives`."""
    any_of_them: bool = False
    newest: int | None = None
    """Only this many matching nodes are ranked, the newest ones."""
    beginnings: bool = False
    """Whether the words are prefixes."""

    @property
    def expression(self) -> str:
        """The FTS5 expression. An empty phrase matches nothing."""
        star = "*" if self.beginnings else ""
        words = (
            " OR ".join(
                _phrase(term).rstrip("*") + star if star else _phrase(term) for term in group
            )
            for group in self.groups
        )
        wanted = (") OR (" if self.any_of_them else ") AND (").join(words)
        return f"terms : (({wanted}))" if self.groups else '""'

    @property
    def term_groups(self) -> TermGroups:
        """The words for a `tsvector`."""
        groups = tuple(
            tuple(SearchTerm(term, self.beginnings or _is_lone(term)) for term in group)
            for group in self.groups
        )
        return TermGroups(groups, self.any_of_them)


def words_of(query: Query) -> SearchWords:
    """All the words of a question."""
    from ctx import terms

    return SearchWords(tuple(terms.alternatives(query.words)[:MOST_WORDS]))


def compile_query(
    query: Query,
    scope: Scope,
    now_ms: int,
    words: SearchWords | None = None,
    *,
    rare_tags: Collection[str] = (),
    dialect: Dialect = Dialect.SQLITE,
) -> SqlStatement:
    """The ids of the matching nodes, newest first; for a text, ids and ranks, best first.

    By default, a node must have all words of the text. Nodes of the same rank are not ordered: to
    compare their ids, SQLite would have to read all of them.

    `rare_tags` are tags of the query that few nodes have.
    """
    if query.mode == "text":
        rank = _ranked_statement if dialect is Dialect.SQLITE else _ranked_by_tsvector
        return rank(query, scope, now_ms, words or words_of(query))
    simple = _simplify(_visible(query, scope))
    if dialect is Dialect.POSTGRESQL:
        return _newest_statement(simple, now_ms)
    return _filter_statement(simple, now_ms, rare_tags)


def required_tags(query: Query) -> list[str]:
    """The tags that every match has."""
    simple = _simplify(query.tree or _TRUE)
    parts = simple.parts if isinstance(simple, And) else (simple,)
    return [part.tag for part in parts if isinstance(part, TagFilter)]


def compile_tier(
    query: Query,
    scope: Scope,
    now_ms: int,
    tier: str | None,
    dialect: Dialect = Dialect.SQLITE,
) -> SqlStatement | None:
    """The matching nodes of one tier, for a query of filters; None if no node can match.

    A caller that reads the tiers in order can skip nodes that had a stronger tier. `None` stands
    for the nodes with none of the three tiers that a view uses.
    """
    known: dict[str, bool] = {}
    within: list[Expression] = []
    if tier:
        known[tier] = True
        within.append(TagFilter(tier))
    else:
        stronger = model.TIERS[: model.TIERS.index(model.OFF_CONTEXT)]
        known.update(dict.fromkeys(stronger, False))
        within += [Not(TagFilter(other)) for other in stronger]
    rest = _simplify(_visible(query, scope), known)
    if isinstance(rest, Or) and not rest.parts:
        return None
    simple = _simplify(And((*within, rest)))
    if dialect is Dialect.POSTGRESQL:
        return _newest_statement(simple, now_ms)
    return _filter_statement(simple, now_ms)


def compile_count(
    query: Query,
    scope: Scope,
    now_ms: int,
    words: SearchWords | None = None,
    *,
    left_out: bool = False,
    rare_tags: Collection[str] = (),
    dialect: Dialect = Dialect.SQLITE,
) -> SqlStatement:
    """The number of matches; with `left_out`, of those that the scope's project hides."""
    expression = _visible(query, scope._replace(project=None) if left_out else scope)
    if left_out:
        expression = And((expression, hidden_nodes(scope)))
    simple = _simplify(expression)
    if dialect is Dialect.POSTGRESQL:
        where = condition(simple, now_ms)
        if query.mode == "text":
            having = tsvector_search.matches((words or words_of(query)).term_groups)
            where = join_fragments([having, where], " AND ")
        return SqlStatement(f"SELECT count(*) FROM nodes AS n WHERE {where.sql}", where.parameters)
    if query.mode == "text":
        matches = _matches(words or words_of(query))
        if isinstance(simple, Not) and _is_superseded(simple.part):
            # Few nodes are superseded, so it is faster to count them and subtract the number.
            sql = f"SELECT count(*) FROM nodes_fts WHERE {matches.sql}"
            few = "SELECT rowid FROM nodes INDEXED BY idx_nodes_replaced"
            hidden = f"{sql} AND rowid IN ({few} WHERE superseded_by IS NOT NULL)"
            return SqlStatement(f"SELECT ({sql}) - ({hidden})", matches.parameters * 2)
        where = join_fragments([matches, condition(simple, now_ms)], " AND ")
        source = "nodes_fts CROSS JOIN nodes AS n ON n.rowid = nodes_fts.rowid"
        return SqlStatement(f"SELECT count(*) FROM {source} WHERE {where.sql}", where.parameters)
    parts = simple.parts if isinstance(simple, And) else (simple,)
    rest = tuple(
        each for each in parts if not (isinstance(each, Not) and _is_superseded(each.part))
    )
    is_single = len(rest) < 2 and all(isinstance(each, TagFilter | TypeFilter) for each in rest)
    if len(rest) == len(parts) or not is_single:
        statement = _filter_statement(simple, now_ms, rare_tags, counted=True)
        return SqlStatement(f"SELECT count(*) FROM ({statement.sql})", statement.parameters)
    # Here too, few nodes are superseded. A longer query would become twice as long.
    every = _filter_statement(And(rest), now_ms, rare_tags, counted=True)
    where = condition(And(rest), now_ms)
    few = "nodes AS n INDEXED BY idx_nodes_replaced WHERE n.superseded_by IS NOT NULL"
    return SqlStatement(
        f"SELECT (SELECT count(*) FROM ({every.sql}))"
        f" - (SELECT count(*) FROM {few} AND {where.sql})",
        every.parameters + where.parameters,
    )


def compile_among(query: Query, scope: Scope, now_ms: int, node_ids: Sequence[str]) -> SqlStatement:
    """Which of these nodes are visible and match the filters; the words are ignored."""
    visible = condition(_simplify(_visible(query, scope)), now_ms)
    places = ", ".join("?" * len(node_ids))
    return SqlStatement(
        f"SELECT n.id FROM nodes AS n WHERE n.id IN ({places}) AND {visible.sql}",
        (*node_ids, *visible.parameters),
    )


def _visible(query: Query, scope: Scope) -> Expression:
    """The query and its scope as one expression."""
    return And((query.tree or _TRUE, *_limits(query, scope)))


def hidden_nodes(scope: Scope) -> Expression:
    """The nodes that the project of a scope hides."""
    other = OtherNameFilter(PROJECT, scope.project or "")
    return And((other, Not(SessionFilter(scope.session)))) if scope.session else other


def _limits(query: Query, scope: Scope) -> list[Expression]:
    """The conditions of the scope."""
    limits: list[Expression] = []
    if not scope.include_superseded and not _names_superseded(query.tree or _TRUE):
        limits.append(Not(_SUPERSEDED))
    if scope.project is not None and not query.names_project:
        limits.append(Not(hidden_nodes(scope)))
    if scope.only_project and scope.project is not None:
        limits.append(TagFilter(PROJECT + scope.project))
    if scope.task is not None and not query.names_task:
        limits.append(Not(And((TagFilter(model.WORKING), OtherNameFilter(TASK, scope.task)))))
    return limits


def _names_superseded(expression: Expression) -> bool:
    match expression:
        case And(parts) | Or(parts):
            return any(map(_names_superseded, parts))
        case Not(part):
            return _names_superseded(part)
        case HasFilter():
            return _is_superseded(expression)
        case _:
            return False


def _is_superseded(expression: Expression) -> bool:
    # Tuples of different classes may be equal.
    return isinstance(expression, HasFilter) and expression == _SUPERSEDED


def _simplify(
    expression: Expression, known: Mapping[str, bool] = {}, negated: bool = False
) -> Expression:
    """An equivalent expression with `NOT` only before filters, without nested parts of the same
    kind, and without constants.

    `known` are tags that a node has or does not have.
    """
    match expression:
        case Not(part):
            return _simplify(part, known, not negated)
        case TagFilter(tag) if tag in known:
            return _FALSE if known[tag] == negated else _TRUE
        case And(parts) | Or(parts):
            is_and = isinstance(expression, And) != negated
            kind: type[And] | type[Or] = And if is_and else Or
            simplified: list[Expression] = []
            for part in parts:
                simple = _simplify(part, known, negated)
                if isinstance(simple, kind):
                    simplified += simple.parts
                elif isinstance(simple, And | Or) and not simple.parts:
                    return simple
                else:
                    simplified.append(simple)
            return simplified[0] if len(simplified) == 1 else kind(tuple(simplified))
        case _:
            return Not(expression) if negated else expression


def _filter_statement(
    expression: Expression,
    now_ms: int,
    rare_tags: Collection[str] = (),
    *,
    counted: bool = False,
) -> SqlStatement:
    """The ids that match a simplified expression; unordered if they are counted."""
    parts = expression.parts if isinstance(expression, And) else (expression,)
    candidates, rest = _candidates(parts, now_ms, rare_tags)
    if candidates is None:
        return _scan_statement(rest, now_ms, counted=counted)
    # Only a single list is counted sooner without its order; several are merged in that order.
    listed = [part for part in parts if part not in rest]
    is_single = len(listed) == 1 and isinstance(listed[0], TagFilter | TypeFilter)
    order = "" if counted and is_single else " ORDER BY 1 DESC LIMIT -1"
    ordered = SqlFragment(f"{candidates.sql}{order}", candidates.parameters)
    if not rest:
        return SqlStatement(*ordered)
    statement = _filter_candidates(ordered, rest, now_ms)
    last = "" if counted else " LIMIT -1"
    return SqlStatement(f"{statement.sql}{last}", statement.parameters)


def _scan_statement(
    parts: Sequence[Expression], now_ms: int, *, counted: bool = False
) -> SqlStatement:
    """The ids that match all parts, in the order of the nodes."""
    where = condition(And(tuple(parts)), now_ms)
    order = "" if counted else " ORDER BY n.id DESC LIMIT -1"
    return SqlStatement(f"SELECT n.id FROM nodes AS n WHERE {where.sql}{order}", where.parameters)


def _newest_statement(expression: Expression, now_ms: int) -> SqlStatement:
    """The same for PostgreSQL. Tags are joined, so that it can begin with the rarest."""
    parts = expression.parts if isinstance(expression, And) else (expression,)
    joined = [part for part in parts if isinstance(part, TagFilter)][:_MOST_JOINED]
    joins = "".join(
        f" JOIN tags AS t{place} ON t{place}.node_id = n.id AND t{place}.tag = ?"
        for place in range(len(joined))
    )
    rest = (part for part in parts if not (isinstance(part, TagFilter) and part in joined))
    where = condition(And(tuple(rest)), now_ms)
    return SqlStatement(
        f"SELECT n.id FROM nodes AS n{joins} WHERE {where.sql} ORDER BY n.id DESC",
        (*(part.tag for part in joined), *where.parameters),
    )


def _filter_candidates(
    candidates: SqlFragment, rest: Sequence[Expression], now_ms: int
) -> SqlFragment:
    """The candidates that match the rest, in the same order."""
    others = [part for part in rest if _project_of(part) is None]
    joins = f" CROSS JOIN {_ROW}" if any(map(conditions.reads_row, others)) else ""
    wheres = [condition(And(tuple(others)), now_ms, row="r")] if others else []
    for tag in filter(None, map(_project_of, rest)):
        # A join is faster than a subquery for each candidate. At most one row of a node remains.
        joins = f" LEFT JOIN {_PROJECTS}{joins}"
        wheres.insert(0, SqlFragment("(p.tag IS NULL OR p.tag = ?)", (tag,)))
    where = join_fragments(wheres, " AND ")
    return SqlFragment(
        f"SELECT n.id FROM ({candidates.sql}) AS n{joins} WHERE {where.sql}",
        candidates.parameters + where.parameters,
    )


def _project_of(expression: Expression) -> str | None:
    """The tag of the project, if this is the condition that hides the nodes of all others."""
    match expression:
        case Not(OtherNameFilter(namespace, name)) if namespace == PROJECT:
            return namespace + name
        case _:
            return None


def _candidates(
    parts: Sequence[Expression], now_ms: int, rare_tags: Collection[str] = ()
) -> tuple[SqlFragment | None, list[Expression]]:
    """The candidates for a conjunction, and the parts that remain to be checked."""
    sizes = [_size(part, now_ms) for part in parts]
    if any(isinstance(part, TagFilter) and not part.tag.startswith(_EVERYWHERE) for part in parts):
        # A recent period may contain all nodes; a specific tag hardly ever does.
        sizes = [None if size == _NARROW_TIME else size for size in sizes]
    smallest = min((size for size in sizes if size is not None), default=None)
    if smallest is None:
        return None, list(parts)
    rare = [part for part in parts if isinstance(part, TagFilter) and part.tag in rare_tags]
    if smallest == _SORTED and rare:
        # A few nodes are checked one by one sooner than long lists are merged.
        return _ids(rare[0], now_ms), [part for part in parts if part is not rare[0]]
    # An `OR` of streams can only be merged with others if it comes first.
    first = min(
        (place for place, size in enumerate(sizes) if size == smallest),
        key=lambda place: not isinstance(parts[place], Or),
    )
    candidates = _ids(parts[first], now_ms)
    rest: list[Expression] = []
    # Few nodes are superseded. To look up those of one project is faster than to merge all.
    merges_superseded = all(_project_of(part) is None for part in parts)
    for part in (*parts[:first], *parts[first + 1 :]):
        inner = part.part if isinstance(part, Not) else part
        if smallest == _SORTED and (
            isinstance(inner, TagFilter | TypeFilter)
            or (merges_superseded and _is_superseded(inner))
        ):
            merging = "EXCEPT" if isinstance(part, Not) else "INTERSECT"
            candidates = join_fragments([candidates, _ids(inner, now_ms)], f" {merging} ")
        else:
            rest.append(part)
    return candidates, rest


def _size(expression: Expression, now_ms: int) -> int | None:
    """The rank of an expression by its number of candidates; None if it cannot list any."""
    match expression:
        case TimeFilter():
            return _NARROW_TIME if _is_narrow(expression, now_ms) else None
        case TagPrefixFilter(prefix):
            is_wide = any(namespace.startswith(prefix) for namespace in _EVERYWHERE)
            return None if is_wide else _MANY
        case HasFilter("superseded"):
            return _MANY
        case Or(parts):
            sizes = [_size(part, now_ms) for part in parts]
            known = [size for size in sizes if size is not None]
            if not known or len(known) < len(sizes):
                return None
            is_long = len(parts) > _MOST_MERGED and max(known) == _SORTED
            return _MANY if is_long else max(known)
        case And(parts):
            return min(
                (size for part in parts if (size := _size(part, now_ms)) is not None), default=None
            )
        case _:
            return _ORDER.get(type(expression))


def _is_narrow(time: TimeFilter, now_ms: int) -> bool:
    """Whether this is about two months at most."""
    start, end = time.bounds(now_ms)
    if start is None:
        return False
    months = [12 * int(text[:4]) + int(text[5:7]) for text in (start, end or clock.iso(now_ms))]
    return months[1] - months[0] <= 2


def _ids(expression: Expression, now_ms: int) -> SqlFragment:
    """A list of ids for an expression that has a size."""
    match expression:
        case Or(parts):
            lists = [_ids(part, now_ms) for part in parts]
            if len(lists) <= _MOST_MERGED:
                return join_fragments(lists, " UNION ")
            every = join_fragments(
                (SqlFragment(f"SELECT id FROM ({piece.sql})", piece.parameters) for piece in lists),
                " UNION ALL ",
            )
            return SqlFragment(f"SELECT DISTINCT id FROM ({every.sql})", every.parameters)
        case And(parts):
            sizes = [
                (_size(part, now_ms), isinstance(part, TypeFilter), place)
                for place, part in enumerate(parts)
            ]
            first = min(size for size in sizes if size[0] is not None)[-1]
            rest = parts[:first] + parts[first + 1 :]
            return _filter_candidates(_ids(parts[first], now_ms), rest, now_ms)
        case Not():
            raise AssertionError("`NOT` has no list of ids")
        case _:
            return conditions.ids(expression, now_ms)


def _ranked_statement(query: Query, scope: Scope, now_ms: int, words: SearchWords) -> SqlStatement:
    """Ids and ranks. Filters apply before the ranking, the scope after it.

    So the scope is checked only for nodes that are read: most callers want the first few of many
    thousands.
    """
    matches = _matches(words)
    source = "nodes_fts"
    if query.tree is not None:
        source = "nodes_fts CROSS JOIN nodes AS n ON n.rowid = nodes_fts.rowid"
        matches = join_fragments([matches, condition(_simplify(query.tree), now_ms)], " AND ")
    ranked = (
        "SELECT nodes_fts.rowid AS rowid, bm25(nodes_fts, 0.0, 1.0) AS rank"
        f" FROM {source} WHERE {matches.sql}"
    )
    parameters = matches.parameters
    if words.newest is not None:
        # FTS5 reads the matches in this order, so it stops at the limit.
        ranked = f"SELECT * FROM ({ranked} ORDER BY nodes_fts.rowid DESC LIMIT ?)"
        parameters += (words.newest,)
    visible = condition(_simplify(And(tuple(_limits(query, scope)))), now_ms)
    return SqlStatement(
        f"SELECT n.id, f.rank FROM ({ranked} ORDER BY 2 LIMIT -1) AS f"
        f" CROSS JOIN nodes AS n ON n.rowid = f.rowid WHERE {visible.sql} LIMIT -1",
        parameters + visible.parameters,
    )


def _ranked_by_tsvector(
    query: Query, scope: Scope, now_ms: int, words: SearchWords
) -> SqlStatement:
    """The same in PostgreSQL. The conditions of a scope need the ids of nodes alone."""
    filters = condition(_simplify(query.tree or _TRUE), now_ms)
    ranked = tsvector_search.ranked(words.term_groups, filters, words.newest)
    visible = condition(_simplify(And(tuple(_limits(query, scope)))), now_ms)
    return SqlStatement(
        f"SELECT n.id, n.rank FROM ({ranked.sql}) AS n WHERE {visible.sql}"
        " ORDER BY n.rank, n.id DESC",
        ranked.parameters + visible.parameters,
    )


def _matches(words: SearchWords) -> SqlFragment:
    """The condition that a node has the words of a question."""
    return SqlFragment("nodes_fts MATCH ?", (words.expression,))


def _phrase(term: str) -> str:
    return f'"{term}"*' if _is_lone(term) else f'"{term}"'


def _is_lone(term: str) -> bool:
    """Whether a term is one character of a script without spaces, which is indexed together with
    the next one."""
    from ctx import terms

    return len(term) == 1 and not term.isascii() and terms.extract(f"{term}a") == [term, "a"]
