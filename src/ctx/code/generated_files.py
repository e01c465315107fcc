"""Whether a program wrote a file: by its name, or by a comment at its head.

A generator contains the same phrases in its templates, as strings. So Go's rule applies to every
language: only a comment before any code counts. Migrations and other files that a tool created
and a person edited name the tool, but do not forbid edits.
"""

import re

HEADER = 2048
"""How far into a file its head is searched."""

# The output of interface and form compilers, builds and test runners.
_ENDINGS = tuple(
    "_pb2.py _pb2.pyi _pb2_grpc.py _pb2_grpc.pyi .pb.go .pb.gw.go .pb.validate.go .pb.cc .pb.h"
    " .pb.swift .pb.rb _pb.rb _pb.js _pb.d.ts"
    " .g.dart .gr.dart .freezed.dart .mocks.dart .pb.dart .pbenum.dart .pbgrpc.dart .pbjson.dart"
    " .g.cs .g.i.cs .generated.cs .designer.cs .Designer.cs .designer.vb .Designer.vb"
    " .js.map .mjs.map .cjs.map .css.map .tsbuildinfo .snap .snap.new .ambr".split()
)
_BEGINNING = "zz_generated."

# The lock files of package managers.
_LOCKED = frozenset(
    ".terraform.lock.hcl Cargo.lock Gemfile.lock Pipfile.lock Podfile.lock bun.lock bun.lockb"
    " composer.lock deno.lock flake.lock go.sum go.work.sum gradle.lockfile mix.lock"
    " npm-shrinkwrap.json package-lock.json packages.lock.json pdm.lock pnpm-lock.yaml"
    " poetry.lock pubspec.lock uv.lock yarn.lock".split()
)

_BEFORE_CODE = re.compile(
    rb"(?:\xef\xbb\xbf)?(?>(?:\s++"
    # Lines that must come first in some languages. A macro with a string in it is code.
    rb"|<\?php\b|<\?xml[^>]*+>|<!doctype[^>]*+>|['\"]use strict['\"];?"
    rb"|#(?![ \t]*define\b[^\n]*[\"'])[^\n]*+"
    rb"|//[^\n]*+|--[^\n]*+|;[; ][^\n]*+|%[% ][^\n]*+"
    rb"|/\*.*?(?:\*/|\Z)|<!--.*?(?:-->|\Z)|\{-.*?(?:-\}|\Z))*)",
    re.DOTALL,
)

_LINE_START = rb"^[ \t/*#;%<!-]*"
_BY_ITSELF = rb"(?:auto|automatically |machine)[- ]?generated\b"
_THIS_FILE = rb"\bthis (?:file|code|module|class|script|header|source) (?:is|was|has been) "
_TOOLS = (
    rb"antlr|autoconf|automake|bison|cbindgen|coffeescript|cython|flex|gperf|javacc|openapi"
    rb"|protoc|ragel|re2c|rust-bindgen|swagger|swig|the protocol buffer compiler|thrift"
)
_SAYS_SO = re.compile(
    rb"(?:" + _LINE_START + rb"|\bis )@generated\b(?![`'\"-])"
    rb"|" + _THIS_FILE + rb"(?:" + _BY_ITSELF + rb"|generated\b)"
    rb"|" + _LINE_START + _BY_ITSELF + rb" (?:by|from|with|using|file|code|content)\b"
    rb"|\b(?:generated|made) by (?:gnu )?(?:" + _TOOLS + rb")\b",
    re.MULTILINE,
)
# `Do not edit the output` refers to another file.
_HANDS_OFF = re.compile(rb"\b(?:do not|don't) (?:edit|modify)\b(?! the )")
_NEAR = 150
_DOCSTRING_SAYS_SO = re.compile(
    rb"[ru]?(?:\"\"\"|''')\s*(?:" + _BY_ITSELF + rb"|" + _THIS_FILE + _BY_ITSELF + rb")"
)


def by_name(path: str) -> bool:
    name = path[path.rfind("/") + 1 :]
    return name.endswith(_ENDINGS) or name in _LOCKED or name.startswith(_BEGINNING)


def by_header(content: bytes) -> bool:
    header = content[:HEADER]
    if not any(word in header for word in (b"enerated", b"ENERATED", b"made by")):
        return False
    header = header.lower()
    before_code = _BEFORE_CODE.match(header)
    end = before_code.end() if before_code else 0
    if _SAYS_SO.search(header, 0, end) or _DOCSTRING_SAYS_SO.match(header, end):
        return True
    return any(
        b"generated" in header[max(0, match.start() - _NEAR) : min(end, match.end() + _NEAR)]
        for match in _HANDS_OFF.finditer(header, 0, end)
    )
