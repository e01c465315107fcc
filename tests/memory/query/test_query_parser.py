"""Parsed queries, and the messages about mistakes."""

import unicodedata

import pytest

from ctx.errors import QueryInvalid
from ctx.memory.query import filters
from ctx.memory.query.filters import (
    PathFilter,
    TagFilter,
    TagPrefixFilter,
    TokensFilter,
    TypeFilter,
)
from ctx.memory.query.query_parser import (
    DEEPEST,
    MOST_FILTERS,
    And,
    Expression,
    Not,
    Or,
    Query,
    parse,
    parse_words,
)
from ctx.memory.query.time_filters import TimeFilter

A, B, C, D = TagFilter("a"), TagFilter("b"), TagFilter("c"), TagFilter("d")
DAY_MS = 86_400_000

FILTERS: list[tuple[str, Expression]] = [
    ("type:fact", TypeFilter("fact")),
    ("type:Open_Question", TypeFilter("open-question")),
    ("tag:tier:pinned", TagFilter("tier:pinned")),
    ("tag:task:*", TagPrefixFilter("task:")),
    ("tag:*", TagPrefixFilter("")),
    ('tag:"a b"', TagFilter("a b")),
    ('tag:"a\\"b\\\\c\\d"', TagFilter('a"b\\c\\d')),
    ("tag:更新", TagFilter("更新")),
    ("project:shop", TagFilter("project:shop")),
    ("project:sh*", TagPrefixFilter("project:sh")),
    ("created:>24h", TimeFilter("created_at", ">", DAY_MS, "")),
    ("updated:<=2mo", TimeFilter("updated_at", "<=", 60 * DAY_MS, "")),
    ("created:1y", TimeFilter("created_at", "=", 365 * DAY_MS, "")),
    ("created:90min", TimeFilter("created_at", "=", DAY_MS // 16, "")),
    ("created:=2024-01-31", TimeFilter("created_at", "=", None, "2024-01-31")),
    ("created:<2024-01-31T10:00:00Z", TimeFilter("created_at", "<", None, "2024-01-31T10:00:00Z")),
    ("created:2024-01-31T10:00+02:00", TimeFilter("created_at", "=", None, "2024-01-31T08:00:00Z")),
    ("tokens:>=10", TokensFilter(">=", 10)),
    ("tokens:10", TokensFilter("=", 10)),
    ("has:edges", filters.HasFilter("edges")),
    ("from:01m7", filters.LinkedFrom("01M7")),
    ("to:01M7ABCDEFGH", filters.LinkedTo("01M7ABCDEFGH")),
    ("session:a.b-c", filters.SessionFilter("a.b-c")),
    ("path:src/*.py", PathFilter("src/*.py")),
    ("id:01m7", filters.IdFilter("01M7")),
]

TREES: list[tuple[str, Expression]] = [
    ("tag:a AND tag:b", And((A, B))),
    ("tag:a and tag:b Or tag:c", Or((And((A, B)), C))),
    ("tag:a OR tag:b AND tag:c", Or((A, And((B, C))))),
    ("(tag:a OR tag:b) AND tag:c", And((Or((A, B)), C))),
    ("(tag:a OR tag:b)(tag:c)", And((Or((A, B)), C))),
    ("NOT tag:a AND tag:b", And((Not(A), B))),
    ("tag:a NOT tag:b", And((A, Not(B)))),
    ("NOT (tag:a OR tag:b)", Not(Or((A, B)))),
    ("NOT NOT tag:a", A),
    ("tag:a AND NOT NOT NOT tag:b", And((A, Not(B)))),
    ("tag:a AND (tag:b AND (tag:c AND tag:d))", And((A, B, C, D))),
    ("((tag:a) OR ((tag:b))) OR tag:c", Or((A, B, C))),
    ("tag:a OR NOT tag:b AND tag:c OR tag:d", Or((A, And((Not(B), C)), D))),
    (" \ttag:a\n", A),
    ('tag:"a"tag:"b"', And((A, B))),
]


@pytest.mark.parametrize(("text", "tree"), FILTERS + TREES)
def test_filters_are_parsed_into_a_tree(text: str, tree: Expression) -> None:
    # Tuples of different classes may be equal; what they look like is not.
    expected = Query(text, "filters", tree, "", "project" in text, "task:" in text)
    assert repr(parse(text)) == repr(expected)


QUESTIONS: list[tuple[str, str, tuple[Expression, ...]]] = [
    ("refresh token", "refresh token", ()),
    ("type:fact refresh token", " refresh token", (TypeFilter("fact"),)),
    ("refresh type:fact token tag:a", "refresh  token ", (TypeFilter("fact"), A)),
    ("why (tag:a OR tag:b) AND", "why  AND", (Or((A, B)),)),
    ("auth NOT tag:a", "auth ", (Not(A),)),
    ("auth AND tag:a OR tag:b", "auth AND ", (Or((A, B)),)),
    ("auth (tag:a OR", "auth ( OR", (A,)),
    ("auth (tag:a AND (tag:b OR tag:c)) x", "auth  x", (And((A, Or((B, TagFilter("c"))))),)),
    ("TypeError:", "TypeError:", ()),
    ("http://example.org/a?b", "http://example.org/a?b", ()),
    ("C:\\Temp\\a.txt", "C:\\Temp\\a.txt", ()),
    ("tag::a", "tag::a", ()),
    ("12:30", "12:30", ()),
    ("foo:bar baz", "foo:bar baz", ()),
    ("type:fcat tag:a x", "type:fcat  x", (A,)),
    ("type: fact", "type: fact", ()),
    ('"type:fact"', '"type:fact"', ()),
    ('say "tag:a" tag:b', 'say "tag:a" ', (B,)),
    ('say "hello tag:a', 'say "hello ', (A,)),
    ('say tag:"a b', 'say tag:"a b', ()),
    ('note:"not closed', 'note:"not closed', ()),
    ("def f(path:str): (path:src)", "def f(path:str): ", (PathFilter("src"),)),
    ("--- (((", "--- (((", ()),
    ("-tag:a", "-tag:a", ()),
    ("x tag:\ud800", "x tag:\ud800", ()),
]


@pytest.mark.parametrize(("text", "words", "filters"), QUESTIONS)
def test_any_other_word_makes_a_text_query(
    text: str, words: str, filters: tuple[Expression, ...]
) -> None:
    tree = And(filters) if filters else None
    assert repr(parse(text)) == repr(Query(text, "text", tree, words, False))


def test_a_query_that_names_a_project_is_marked() -> None:
    for text in ("project:a", "NOT tag:project:a", "tag:project:*", "x project:a"):
        assert parse(text).names_project, text
    for text in ("tag:projects", "x foo project:", "tag:a"):
        assert not parse(text).names_project, text


def test_words_are_not_parsed_as_filters() -> None:
    query = parse_words("type:nothing AND (", ["type:fact", "tag:project:a"])
    tree = And((TypeFilter("fact"), TagFilter("project:a")))
    text = "type:fact tag:project:a type:nothing AND ("
    assert query == Query(text, "text", tree, "type:nothing AND (", True)
    assert parse_words("a b") == Query("a b", "text", None, "a b", False)


# A mistake, the place that is marked (^ stands below it), and words of the sentence or the hint.
MISTAKES = [
    ("tpye:fact AND tag:x", "tpye", "Did you mean `type:fact`?"),
    ('type:fact foo:"a b"', "foo", 'for a tag write `tag:"foo:a b"`'),
    ("type:fcat", "fcat", "Did you mean `fact`?"),
    ("tag:a AND has:sumary", "sumary", "Did you mean `summary`?"),
    ("tag:a AND type: AND tag:b", "type:", "`type:` has no value"),
    ('tag:""', 'tag:""', "`tag:` has no value"),
    ("created:>yesterday", ">yesterday", "neither an age nor a date"),
    ("created:2024-02-30", "2024-02-30", "neither an age nor a date"),
    ("tokens:<many", "<many", "not a number of tokens"),
    ("from:01M", "01M", "not an id or its beginning"),
    ("session:a/b", "a/b", "cannot name a session"),
    ("type:fact AND (tag:a OR tag:b", "(", "is not closed"),
    ("(tag:a AND tag:c)) AND tag:b", ") AND tag:b", "closes nothing"),
    ("tag:a OR ( )", "( )", "nothing between these parentheses"),
    ("tag:a and", "and", "has nothing after it"),
    ("tag:a AND OR tag:b", "AND", "has nothing after it"),
    ("(tag:a NOT) tag:b", "NOT", "has nothing after it"),
    ("tag:a (OR tag:b)", "OR", "has nothing before it"),
    ('tag:"a b AND type:fact', '"', "This quote is not closed"),
    ("tag:更新 AND tag:ｶﾞ AND tpye:更新", "tpye", "Did you mean `type:更新`?"),
]


@pytest.mark.parametrize(("text", "place", "words"), MISTAKES)
def test_a_mistake_is_marked_at_its_position(text: str, place: str, words: str) -> None:
    with pytest.raises(QueryInvalid) as caught:
        parse(text)
    error = caught.value
    shown, marks = (error.detail or "").split("\n")
    assert shown == f"  {text}"
    before = width(text[: text.index(place)])
    assert marks == f"  {before * ' '}{marks.count('^') * '^'}"
    assert marks.count("^") in (1, len(place))
    assert words in f"{error.message} {error.hint}"
    assert (error.code, error.exit_code) == ("E022", 2)


def width(text: str) -> int:
    """The columns of a text on a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_an_empty_query_is_a_mistake(text: str) -> None:
    with pytest.raises(QueryInvalid) as caught:
        parse(text)
    error = caught.value
    assert (error.message, error.detail) == ("The query is empty.", "")


@pytest.mark.parametrize(
    ("text", "shown", "marks"),
    [
        (
            "type:fact AND " * 40 + "tpye:fact" + " AND tag:a" * 40,
            "…D type:fact AND type:fact AND tpye:fact AND tag:a AND tag:a AND tag:a AN…",
            " " * 31 + "^^^^",
        ),
        (
            "type:fact AND " * 40 + "tpye:x",
            "…:fact AND type:fact AND type:fact AND type:fact AND type:fact AND tpye:x",
            " " * 67 + "^^^^",
        ),
        # Invisible characters do not move the caret.
        ('tag:"\x1b[2J\n\u202e" tpye:a', 'tag:"\ufffd[2J \ufffd" tpye:a', " " * 13 + "^^^^"),
    ],
)
def test_a_query_is_cut_around_the_mistake(text: str, shown: str, marks: str) -> None:
    with pytest.raises(QueryInvalid) as caught:
        parse(text)
    assert caught.value.detail == f"  {shown}\n  {marks}"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("tag:" + "x" * 1001, "A value has at most 1,000 characters."),
        ('tag:"\ud800"', "This value is not valid UTF-8."),
        ("created:>99999999999999999999y", "'99999999999999999999y' is neither an age nor a date."),
        ("created:>²h", "'²h' is neither an age nor a date."),
        ("tokens:>1e3", "'1e3' is not a number of tokens."),
        ("tokens:9" + "9" * 15, "'9999999999999999' is not a number of tokens."),
        ("id:81M7", "'81M7' is not an id or its beginning."),
        ("id:" + "0" * 27, f"'{'0' * 27}' is not an id or its beginning."),
    ],
)
def test_impossible_values_are_mistakes(value: str, sentence: str) -> None:
    with pytest.raises(QueryInvalid) as caught:
        parse(f"tag:a AND {value}")
    assert caught.value.message == sentence


@pytest.mark.slow
def test_depth_and_length_are_bounded_without_recursion() -> None:
    deep = 30_000
    assert parse("(" * deep + "tag:a" + ")" * deep).tree == A
    assert parse("NOT (" * 10_000 + "tag:a" + ")" * 10_000).tree == A
    for text in ("(" * deep, "NOT (" * 10_000, "(" * 10_000 + "tag:a", "tag:a " * 10_000):
        with pytest.raises(QueryInvalid):
            parse(text)

    nested = "tag:a"
    for level in range(DEEPEST):
        nested = f"tag:b {'AND' if level % 2 else 'OR'} ({nested})"
    parse(nested)
    with pytest.raises(QueryInvalid) as caught:
        parse(f"tag:c {'AND' if DEEPEST % 2 else 'OR'} ({nested})")
    assert caught.value.message == "AND and OR take turns more than 12 levels deep."

    parse(" OR ".join(["tag:a"] * MOST_FILTERS))
    with pytest.raises(QueryInvalid) as caught:
        parse(" OR ".join(["tag:a"] * (MOST_FILTERS + 1)))
    assert caught.value.message == "There are more than 500 filters."


@pytest.mark.slow
def test_a_pasted_page_is_a_text_query() -> None:
    page = 'Error: "x" (AND) tag:a http://e.org type:fcat\n' * 2_000
    query = parse(page)
    assert query.mode == "text"
    # What is a filter is not counted without end; the rest are words.
    assert query.tree == And((A,) * MOST_FILTERS)
