"""The language of a file, the reason why it is not parsed, and its text."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.code import encoding, generated_files, language_detection
from ctx.code.generated_files import Attributes
from tests import effort

LIMITS = language_detection.FileLimits(100_000)

BY_NAME = """
rust         src/lib.rs build.rs
python       a.py a.pyi tools/run.PYW SConstruct
typescript   a.ts a.d.ts a.mts a.cts
tsx          a.tsx
javascript   a.js a.jsx a.mjs a.cjs
go           a.go
java         a.java
c            a.c a.h
cpp          a.cc a.cpp a.cxx a.hpp a.hh a.C a.H a.cu
ruby         a.rb Rakefile Gemfile a.gemspec
csharp       a.cs
php          a.php
bash         a.sh a.bash .bashrc PKGBUILD
kotlin       a.kt a.kts
scala        a.scala a.sc
swift        a.swift
lua          a.lua
toml         a.toml Cargo.lock
json         a.json a.jsonc .babelrc
yaml         a.yml a.yaml
markdown     README.md
html         a.html
css          a.css
sql          a.sql
make         Makefile sub/GNUmakefile a.mk
dockerfile   Dockerfile Dockerfile.dev dev.dockerfile
starlark     BUILD a/WORKSPACE BUILD.bazel rules.bzl
cmake        CMakeLists.txt a.cmake
go-mod       go.mod
objective-c  a.m a.mm
"""


def test_a_language_by_name() -> None:
    for line in BY_NAME.strip().splitlines():
        language, *paths = line.split()
        found = {path: language_detection.language_of(path) for path in paths}
        assert found == dict.fromkeys(paths, language)
    for path in ("a", "a.xyz", "py", "Makefile.am", "x.inc", ".", "a.", "src/rs", ""):
        assert language_detection.language_of(path) is None, path


@pytest.mark.parametrize(
    ("line", "language"),
    [
        (b"#!/bin/sh", "bash"),
        (b"#! /usr/bin/python3.11 -u", "python"),
        (b"#!/usr/bin/env -S python3 -u", "python"),
        (b"#!/usr/bin/env -i PATH=/bin ruby2.7\r", "ruby"),
        (b"#!/usr/bin/env -S uv run --script", "python"),
        (b"#!/usr/local/bin/node18", "javascript"),
        (b"#!/usr/bin/env -S deno run", "typescript"),
        (b"#!/usr/bin/lua5.4", "lua"),
        (b"#!/usr/bin/perl", "perl"),
        (b"#!/opt/unknown/thing", None),
        (b"#!/usr/bin/env", None),
        (b"#!", None),
        (b"#!\n/bin/sh", None),
        (b"#!" + b"1" * 100_000, None),
        (b"# python", None),
    ],
)
def test_a_language_by_its_interpreter(line: bytes, language: str | None) -> None:
    assert language_detection.language_of("bin/tool", line + b"\nrest\n") == language
    assert language_detection.language_of("bin/tool.py", line) == "python"


@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("a.h", b"struct point { int x; };\n#include <stdio.h>\n", "c"),
        ("a.h", b'/* class X { */ // namespace a {\nchar *s = "std::string";\n', "c"),
        ("a.h", b'#ifdef __cplusplus\nextern "C" {\n#endif\nint f(struct class *c);\n', "c"),
        ("a.h", b'int namespace; int virtual;\nasm("nop" :: "r"(x));\n', "c"),
        ("a.h", b"class X : public Y\n{\n};\n", "cpp"),
        ("a.h", b"namespace a { namespace b { } }\n", "cpp"),
        ("a.h", b"template <typename T> T f(T);\n", "cpp"),
        ("a.h", b"void f(std::string);\n", "cpp"),
        ("a.h", b"#include <vector>\n", "cpp"),
        ("a.h", b"/*" * 4000 + b"class X {", "c"),
        ("a.h", b"class " + b"a " * 4000, "c"),
        ("a.m", b"#import <Foundation/Foundation.h>\n", "objective-c"),
        ("a.m", b"% a comment\nfunction y = f(x)\n", "matlab"),
        ("a.inc", b"<?php\nfunction f() {}\n", "php"),
        ("a.inc", b"#define A 1\n", "c"),
        ("a.inc", b"#include <map>\nstd::map<int, int> m;\n", "cpp"),
        ("a.inc", b"mov ax, bx\n", None),
        ("a.ts", b'<?xml version="1.0"?>\n<!DOCTYPE TS>\n', "xml"),
        ("a.ts", b"export const a = 1\n", "typescript"),
    ],
)
def test_the_content_decides_for_an_ambiguous_file_ending(
    path: str, head: bytes, language: str | None
) -> None:
    assert language_detection.language_of(path, head) == language


LONG = b"var a=1;" * 300
LINES = b"var a = 1;\n" * 300


UNFIT = [
    ("a.py", b"", None),
    ("a.py", b"x = 1\n", None),
    ("a.py", b"\0", "binary"),
    ("a.py", b"x = 1\n" * 1000 + b"\0", "binary"),
    ("a.py", b"x = 1\n" * 10_000 + b"\0", None),
    ("a.py", b"\x01\x02\x03" * 100, "not text"),
    ("a.py", "x = 'é'\n".encode("latin-1") * 100, None),
    ("a.py", b"x = '\x1b[0m\x0c'\n", None),
    ("a.py", "x = 1\n".encode("utf-16"), None),
    ("a.py", b"\xff\xfe" + "x = '😀'\n".encode("utf-16-le") * 1000, None),
    ("a.py", b"\xfe\xff" + "x = 1\n".encode("utf-16-be") * 5000, None),
    ("a.py", "x = 1\n".encode("utf-32"), None),
    ("a.mp3", b"\xff\xfe\x00\xd8\x00\xd8" * 100, "not text"),
    ("a.mp3", b"\xff\xfe\0\0" + b"\xff" * 400, "not text"),
    ("a.bin", b"\xff\xfe" + b"a\0\0\0" * 100, "binary"),
    ("a.py", b"x\n" * 60_000, "larger than 100,000 bytes"),
    ("a.min.js", b"a\n", "minified"),
    ("a-min.css", b"a\n", "minified"),
    ("admin.js", b"a\n", None),
    ("a.js", LONG, "minified"),
    ("a.js", b"/*\n" + b" * The licence.\n" * 100 + b"*/\n" + LONG * 4, "minified"),
    ("a.js", LINES + b"var data = '" + b"x" * 2500 + b"';\n", None),
    ("a.js", LINES + b"//# sourceMappingURL=a.js.map\n", "generated"),
    ("a.js", b"//# sourceMappingURL=is what we look for\n" + LINES, None),
    ("a.css", b"a{b:c}" * 500, "minified"),
    ("a.json", b"[1,2]" * 1000, "minified"),
    ("a.py", b"data = '" + b"x" * 3000 + b"'\n" + b"x = 1\n" * 300, None),
    ("a.md", b"A paragraph of some five hundred characters. " * 11 + b"\n", None),
]


def test_why_a_file_is_not_parsed() -> None:
    for path, content, reason in UNFIT:
        assert language_detection.unfit(path, content, LIMITS) == reason, (path, content[:99])


VENDORED = """
node_modules/a/b.js web/node_modules/a/b.js pip/_vendor/six.py third_party/zlib/a.c
src/ThirdParty/a.c vendor/a/b.go tools/vendor/github.com/a/b.go app/static/js/vendor/jquery.js
extern/a.c deps/lua/a.c external/a.hpp
""".split()
NOT_VENDORED = """
shop/vendor/models.py src/vendor/vendor.java external/service.py deps/a.py app/external/a.c
vendor.py a/vendoring/b.py parties/a.py
""".split()


def test_vendored_code_is_recognised_by_its_path() -> None:
    found = {
        path: language_detection.unfit(path, b"x\n", LIMITS) for path in [*VENDORED, *NOT_VENDORED]
    }
    assert found == dict.fromkeys(VENDORED, "vendored") | dict.fromkeys(NOT_VENDORED)


BY_A_PROGRAM = [
    ("a.go", b"// Code generated by stringer -type=A; DO NOT EDIT.\n\npackage a\n"),
    ("a.go", b"// Copyright\n\n// Code generated by x. DO NOT EDIT.\npackage a\n"),
    ("a.rs", b"// @generated by a tool\n"),
    ("a.rs", b"// This file is @generated by prost-build.\n"),
    ("a.rs", b"/* automatically generated by rust-bindgen 0.69.4 */\n"),
    ("a.js", b"/**\n * @generated SignedSource<<0123>>\n */\n'use strict';\n"),
    ("a.js", b"'use strict';\n\n/* Auto-generated by build.js */\n"),
    ("a.py", b"#!/usr/bin/env python\n# Generated by the protocol buffer compiler.\n"),
    ("a.py", b"# Generated by a script\n# DO NOT EDIT\nx = 1\n"),
    ("a.py", b'"""Automatically generated file.\n\nRun the script.\n"""\n'),
    ("a.py", b"# DO NOT MODIFY THIS FILE: it was\n# generated from a schema\n"),
    ("a.c", b"/* Generated by Cython 3.0 */\n"),
    ("a.c", b"#ifndef A_H\n#define A_H\n/* This file was generated by SWIG */\n"),
    ("a.c", b"/* A Bison parser, made by GNU Bison 3.8.2.  */\n"),
    ("a.php", b"<?php\n// This file is auto-generated\n"),
    ("a.xml", b'<?xml version="1.0"?>\n<!-- This file is generated -->\n<a/>\n'),
    ("a.sql", b"-- This file has been automatically generated.\nselect 1;\n"),
]
BY_ITS_NAME = (
    "proto/a_pb2.py a_pb2_grpc.py a.pb.go lib/a.g.dart Form.Designer.cs zz_generated.deepcopy.go"
    " package-lock.json web/yarn.lock Cargo.lock go.sum __snapshots__/a.test.js.snap"
)

BY_PEOPLE = [
    ("0001_initial.py", b"# Generated by Django 4.2 on 2024-01-01\n\nfrom django.db import x\n"),
    ("settings.py", b'"""\nDjango settings.\n\nGenerated by \'django-admin startproject\'.\n"""\n'),
    ("gen.py", b'TEMPLATE = """\\\n# Code generated by gen. DO NOT EDIT.\n"""\n'),
    ("gen.go", b"package main\n\nconst header = `\n// Code generated by gen. DO NOT EDIT.\n`\n"),
    ("gen.rs", b'const HEAD: &str = "\n// @generated\n";\n'),
    ("gen.h", b'#define BANNER "/* This file is generated: DO NOT EDIT */"\n'),
    ("gen.js", b"const head = `\n/** @generated */`\n"),
    ("lint.py", b"# Files that say `@generated` are passed over.\nx = 1\n"),
    ("docs.py", b"# The manual is generated from this file; do not edit the output.\n"),
    ("a.py", b'"""Tells whether a file was generated: do not edit those."""\n'),
    ("a.py", b"# Numbers generated by hand.\n"),
    ("a.py", b"# Do not edit: ask first.\n"),
    ("a.py", b"x = 1\n" * 2000 + b"# Code generated by x. DO NOT EDIT.\n"),
]


def test_generated_files_are_recognised() -> None:
    for path, content in (*BY_A_PROGRAM, *((name, b"") for name in BY_ITS_NAME.split())):
        assert language_detection.unfit(path, content, LIMITS) == "generated", (path, content)


def test_files_that_only_mention_generators_are_not_generated() -> None:
    modules = (Path(language_detection.__file__), Path(generated_files.__file__), Path(__file__))
    own = ((path.name, path.read_bytes()) for path in modules)
    for path, content in (*BY_PEOPLE, *own, ("lock.py", b""), ("snap.go", b"")):
        assert language_detection.unfit(path, content, LIMITS) is None, (path, content)


def test_gitattributes_overrule_detection() -> None:
    reason = generated_files.read(
        b"\xef\xbb\xbf# About our files\n"
        b"*.gen.py linguist-generated\n"
        b"api/** linguist-generated=true text\n"
        b"api/by_hand.py -linguist-generated\n"
        b"*_pb2.py linguist-generated=false\n"
        b"vendor/ours/** -linguist-vendored\r\n"
        b"copied/** text linguist-vendored\n"
        b"copied/ linguist-vendored=false\n"
        b'"with space/*" linguist-vendored\n'
        b"copied/later.py !linguist-vendored\n"
        b"[attr]mine linguist-generated\n"
        b"!a linguist-generated\n"
        b"[unclosed linguist-generated\n"
        b"lonely\n"
    )
    limits = language_detection.FileLimits(100_000, reason)
    expected = {
        **dict.fromkeys(("a.gen.py", "x/a.gen.py", "api/x/a.py", "a.py"), "generated"),
        **dict.fromkeys(("api/by_hand.py", "a_pb2.py", "vendor/ours/a_pb2.py"), None),
        **dict.fromkeys(("vendor/a.py", "copied/a.py", "with space/a.py"), "vendored"),
        "copied/later.py": "generated",
    }
    for path, reason_of_path in expected.items():
        found = language_detection.unfit(path, b"# This file is generated\n", limits)
        assert found == reason_of_path, path


def test_only_the_gitattributes_at_the_root_are_read(folder: Path) -> None:
    assert generated_files.read_attributes(str(folder)) == Attributes()
    (folder / ".gitattributes").write_text("*.py linguist-generated\n")
    assert generated_files.read_attributes(str(folder)).says("x/a.py", "generated") is True
    assert generated_files.read_attributes(str(folder)).says("x/a.py", "vendored") is None
    (folder / "sub").mkdir()
    (folder / "sub" / ".gitattributes").symlink_to(folder / ".gitattributes")
    assert generated_files.read_attributes(str(folder / "sub")) == Attributes()


def test_some_files_are_excluded_without_reading_them() -> None:
    unread = language_detection.unfit_unread
    assert unread("a.py", 100_000, LIMITS) is None
    assert unread("a.py", 100_001, LIMITS) == "larger than 100,000 bytes"
    assert unread("vendor/a.py", 1 << 40, LIMITS) == "vendored"


@pytest.mark.parametrize(
    ("content", "text", "name"),
    [
        (b"", "", "utf-8"),
        ("é\n".encode(), "é\n", "utf-8"),
        ("\ufeffé\n".encode(), "é\n", "utf-8-sig"),
        ("é\n".encode("utf-16"), "é\n", "utf-16"),
        (b"\xfe\xff" + "é\n".encode("utf-16-be"), "é\n", "utf-16"),
        ("é\n".encode("utf-32"), "é\n", "utf-32"),
        ("é\n".encode("latin-1"), "é\n", "latin-1"),
        ("# coding: latin-1\né\n".encode("latin-1"), "# coding: latin-1\né\n", "iso8859-1"),
        ("#!x\n# -*- coding: cp1251 -*-\nж".encode("cp1251"), None, "cp1251"),
        ("# vim: set fileencoding=euc-jp :\nあ".encode("euc-jp"), None, "euc_jp"),
        ("# coding: utf-8\né".encode(), None, "utf-8"),
        ("\n\n# coding: cp1251\né".encode(), None, "utf-8"),
        ("<?xml version='1.0' encoding='iso-8859-2'?>ő".encode("iso-8859-2"), None, "iso8859-2"),
        ("# coding: rot13\né".encode(), None, "utf-8"),
        ("# coding: unicode_escape\né\\x".encode(), None, "utf-8"),
        ("# coding: cp037\né".encode(), None, "utf-8"),
        ("# coding: no-such-thing\né".encode(), None, "utf-8"),
        ("naïve café ".encode() + "é".encode("latin-1"), "naïve café é", "mixed"),
    ],
)
def test_bytes_are_decoded(content: bytes, text: str | None, name: str) -> None:
    decoded = encoding.decode(content)
    assert decoded.encoding == name
    if text is None:
        text = content.decode(name)
    assert decoded.text == text


MARKS = st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"#!"])
HEADS = st.sampled_from([b"", b"# coding: gbk\n", b"// generated\n", b"/*", b"<!--", b'"""'])
NAMES = st.sampled_from(["a.py", "a.h", "a.m", "a.inc", "a.ts", "a.js", "bin/a", "vendor/a/b.c"])


@settings(max_examples=effort.times(100), deadline=None)
@given(st.text(max_size=40) | NAMES, MARKS, HEADS, st.binary(max_size=3000))
def test_any_bytes_can_be_decoded(path: str, mark: bytes, head: bytes, rest: bytes) -> None:
    content = mark + head + rest
    language_detection.language_of(path, content)
    language_detection.unfit(path, content, language_detection.FileLimits(2000, Attributes()))
    generated_files.read(content)
    # Whatever comes out can be written down.
    encoding.decode(content).text.encode("utf-8")


# A NUL right behind the mark of UTF-16 makes it that of UTF-32.
@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_text_with_a_byte_order_mark_is_decoded(text: str) -> None:
    for name in ("utf-8-sig", "utf-16", "utf-32"):
        assert encoding.decode(text.encode(name)).text == text
