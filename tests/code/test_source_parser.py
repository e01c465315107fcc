"""Edge cases of parsing one file."""

import pytest

from ctx.code import source_parser
from ctx.code.source_model import ParsedFile


def signatures(language: str, content: str) -> list[str]:
    parsed = source_parser.parse("a", content.encode(), language)
    return [item.signature for item in parsed.items[1:]]


@pytest.mark.parametrize(
    ("language", "content", "signature"),
    [
        ("python", "def f(a):\n    # why\n    return a\n", "def f(a)"),
        ("python", "def f(\n    a,  # the first\n    b='#',\n): ...\n", "def f( a, b='#', )"),
        ("python", "class C:  # note\n    # more\n    x: int\n", "class C"),
        ("rust", "fn f(a: u32) -> u32 // why\n{\n    a\n}\n", "fn f(a: u32) -> u32"),
        ("typescript", "function f() /* why */ {\n}\n", "function f()"),
        ("go", 'package a\n\nfunc f(s string) { // "x"\n\treturn s\n}\n', "func f(s string)"),
    ],
)
def test_a_comment_is_not_part_of_a_signature(language: str, content: str, signature: str) -> None:
    assert signatures(language, content)[0] == signature


def test_a_long_signature_is_cut() -> None:
    assert signatures("python", f"def f({'a' * 700}): ...") == [f"def f({'a' * 594}"]


def test_a_comment_after_code_does_not_document_the_next_item() -> None:
    parsed = source_parser.parse("a.c", b"int a; // the first\nint b;\n// the last\nint c;\n", "c")
    assert [item.doc for item in parsed.items[1:]] == ["", "", "the last"]


@pytest.mark.parametrize(
    ("content", "language"),
    [
        ("import os\n\n\nclass C:\n    def f(self, a: int = 1): return os.stat(a)\n", "python"),
        ("def f(:\n    return g(\n", "python"),
        ("package a.b;\nimport c.D;\nclass A { D d; int f() { return d.g(); } }\n", "java"),
        ("use a::B;\nimpl B {\n    fn f(&self) -> u32 { self.g() }\n}\n", "rust"),
    ],
)
def test_the_items_alone_are_those_of_the_whole(content: str, language: str) -> None:
    whole = source_parser.parse("a", content.encode(), language)
    alone = source_parser.parse_items("a", content.encode(), language)
    assert alone == ParsedFile(language, "", whole.lines, whole.items, problems=whole.problems)


def test_an_arrow_in_a_type_closes_no_bracket() -> None:
    parsed = source_parser.parse("a.rs", b"struct S(Map<fn() -> u8, C>, B);\n", "rust")
    assert [(each.name, each.type) for each in parsed.bindings] == [("0", "Map"), ("1", "B")]


def test_the_hash_of_a_body_does_not_depend_on_its_place() -> None:
    def last_hash(content: str) -> bytes:
        return source_parser.parse("a.py", content.encode(), "python").items[-1].body_hash

    alone = last_hash("def f():\n    if 1:\n        return 2\n")
    assert alone == last_hash("class C:\n    def f():\n        if 1:\n            return 2\n")
    assert alone != last_hash("def f():\n    if 1:\n        pass\n    return 2\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "typedef struct node { int x; } node_t, *node_p;",
            ["typedef struct node node_t", "typedef struct node *node_p", "typedef struct node"],
        ),
        ("typedef struct { int x; } at, *to;", ["typedef at *to", "typedef struct { … } at"]),
        ("typedef struct { int x; } *to;", ["typedef struct { … } *to"]),
        ("typedef enum color { RED } color;", ["typedef enum color"]),
        ("typedef int (*call)(int);", ["typedef int (*call)(int)"]),
    ],
)
def test_the_signature_of_a_typedef_contains_its_name(content: str, expected: list[str]) -> None:
    assert signatures("c", content) == expected


@pytest.mark.parametrize(
    ("content", "doc"),
    [
        ('"""What it is for.\n\nMore."""\nimport os\n', "What it is for.\n\nMore."),
        ("#!/usr/bin/env python\n# (c)\n\nr'''Why.'''\n", "Why."),
        ('\ufeff"Short."\n', "Short."),
        ('import os\n"""Too late."""\n', ""),
        ("# Only this", ""),
        ("", ""),
    ],
)
def test_a_module_docstring_documents_a_python_file(content: str, doc: str) -> None:
    assert source_parser.parse("a.py", content.encode(), "python").items[0].doc == doc
