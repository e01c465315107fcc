"""Detect the language of a file, and whether it is worth parsing.

Every file is listed in the index with its language. Files that no person wrote or can read are not
parsed, and the index records the reason. Hiding a person's own code is worse than parsing a copied
library, so the rules require clear evidence; a repository can override them in `.gitattributes`.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from ctx.code import generated_files
from ctx.code.encoding import marked_encoding
from ctx.code.generated_files import Attributes

HEAD = 8192
"""The maximum number of bytes that are read from the beginning of a file."""

_PROBE = 512
_TAIL = 300
_FEW_BYTES = 2000
_LONG_LINE = 1000
_READABLE_MEAN_LINE = 60


def _table(text: str) -> dict[str, str]:
    """Invert a table: the language of each word."""
    lines = (line.split() for line in text.strip().splitlines())
    return {word: language for language, *words in lines for word in words}


_ENDINGS = _table("""
bash        sh bash zsh ksh bats ebuild
c           c
cpp         cc cpp cxx c++ hh hpp hxx h++ ipp tpp txx inl ino cu cuh cppm ixx C H
csharp      cs csx
go          go
java        java
javascript  js jsx mjs cjs es6
kotlin      kt kts
lua         lua rockspec
php         php php3 php4 php5 php7 phtml
python      py pyi pyw
ruby        rb rake gemspec ru rbi podspec
rust        rs
scala       scala sc sbt
swift       swift
tsx         tsx
typescript  mts cts
asm         s asm nasm
astro       astro
batch       bat cmd
clojure     clj cljs cljc edn
cmake       cmake
coffeescript coffee
css         css
csv         csv tsv
cython      pyx pxd pxi
d           d
dart        dart
dockerfile  dockerfile
elixir      ex exs
elm         elm
erlang      erl hrl
fish        fish
fortran     f f77 f90 f95 f03 f08 for
fsharp      fs fsi fsx
glsl        glsl vert frag comp
graphql     graphql gql
groovy      groovy gradle gvy
handlebars  hbs handlebars
haskell     hs lhs
hcl         tf hcl tfvars
html        html htm xhtml
ini         ini cfg conf properties
jinja       j2 jinja jinja2
json        json jsonc json5 jsonl geojson webmanifest
julia       jl
jupyter     ipynb
just        just
latex       tex sty
less        less
lisp        lisp lsp el
make        mk mak
markdown    md markdown mdx
nim         nim nims
nix         nix
objective-c mm
ocaml       ml mli
org         org
pascal      pas dpr
perl        pl pm t
powershell  ps1 psm1 psd1
prisma      prisma
proto       proto
r           r
restructuredtext rst
sass        sass
scheme      scm ss rkt
scss        scss
solidity    sol
sql         sql
starlark    bzl star bazel
svelte      svelte
svg         svg
tcl         tcl
text        txt
thrift      thrift
toml        toml
verilog     v sv svh vh
vhdl        vhd vhdl
vim         vim
vue         vue
xml         xml xsd xsl xslt plist xaml csproj fsproj vcxproj props targets
yaml        yaml yml
zig         zig zon
""")

_NAMES = _table("""
bash        .bashrc .bash_profile .bash_aliases .profile .zshrc .zprofile .zshenv PKGBUILD gradlew
cmake       CMakeLists.txt
dockerfile  Dockerfile Containerfile
go-mod      go.mod go.work
groovy      Jenkinsfile
ini         .editorconfig .gitconfig .npmrc .pylintrc .flake8 .coveragerc
javascript  Jakefile
json        .babelrc .eslintrc .prettierrc .jshintrc composer.lock Pipfile.lock
just        Justfile justfile .justfile
make        Makefile makefile GNUmakefile
meson       meson.build meson_options.txt
python      SConstruct SConscript wscript
ruby        Rakefile Gemfile Guardfile Vagrantfile Podfile Brewfile Fastfile Capfile Dangerfile
starlark    BUILD WORKSPACE Tiltfile
text        LICENSE LICENCE COPYING NOTICE AUTHORS CONTRIBUTORS README CHANGELOG INSTALL TODO
toml        Cargo.lock Pipfile poetry.lock uv.lock pdm.lock
yaml        .clang-format .clang-tidy .yamllint
""")

_INTERPRETERS = _table("""
awk         awk gawk mawk nawk
bash        sh bash dash ash zsh ksh mksh bats
elixir      elixir
erlang      escript
fish        fish
groovy      groovy
javascript  node nodejs bun gjs
julia       julia
just        just
kotlin      kotlin kotlinc
lisp        sbcl emacs
lua         lua luajit texlua
make        make gmake
ocaml       ocaml
perl        perl
php         php
powershell  pwsh
python      python pypy pythonw jython ipython uv pipx hatch
r           Rscript
ruby        ruby jruby rake
rust        rust-script cargo
scala       scala scala-cli
scheme      guile racket
swift       swift
tcl         tclsh wish expect
typescript  deno ts-node tsx
""")

_SHEBANG = re.compile(rb"#![ \t]*(\S{1,200})([^\r\n]{0,200})")
_VERSION = re.compile(r"[-_.]?\d[\d.]*\w?$")


def language_of(path: str, head: bytes = b"") -> str | None:
    """The language of a file by its name, else by the interpreter in its first line.

    If an extension is used by several languages, the head decides; without one, the most common
    language is assumed.
    """
    name = path[path.rfind("/") + 1 :]
    if name in _NAMES:
        return _NAMES[name]
    stem, dot, ending = name.rpartition(".")
    if dot:
        small = ending.lower()
        if language := _ENDINGS.get(ending) or _ENDINGS.get(small):
            return language
        if small in _AMBIGUOUS:
            return _AMBIGUOUS[small](head[:HEAD])
    if head.startswith(b"#!"):
        return _language_of_shebang(head)
    # `Dockerfile.dev`, but not `Makefile.am`, which is another language.
    return "dockerfile" if stem in ("Dockerfile", "Containerfile") else None


def _language_of_shebang(head: bytes) -> str | None:
    match = _SHEBANG.match(head)
    if match is None:
        return None
    program, rest = (part.decode("latin-1") for part in match.groups())
    # After `env`, options and variables precede the program.
    words = rest.split() if program.endswith("/env") else [program]
    for word in words:
        name = word.rpartition("/")[2]
        if language := _INTERPRETERS.get(name) or _INTERPRETERS.get(_VERSION.sub("", name)):
            return language
    return None


_COMMENTS_AND_STRINGS = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?>(?:[^\"\\\n]|\\.)*)\"?|'(?>(?:[^'\\\n]|\\.)*)'?", re.DOTALL
)
_CPP = re.compile(
    rb"\bclass\s++\w++[^;(){}=]{0,200}+\{|\bnamespace\b[^;(){}=]{0,200}+\{|\btemplate\s*<|\w::~?\w"
    rb"|^[ \t]*(?:public|private|protected)[ \t]*:|\busing\s+\w|\bvirtual\s+[\w~]"
    rb"|^[ \t]*#[ \t]*include[ \t]*<[a-z_]+>",
    re.MULTILINE,
)
_PREPROCESSED = re.compile(rb"^[ \t]*#[ \t]*(?:include|define|if|ifdef|ifndef)\b", re.MULTILINE)
_OBJECTIVE_C = re.compile(
    rb"^[ \t]*(?:@(?:interface|implementation|protocol)|#import)\b", re.MULTILINE
)
_MATLAB = re.compile(rb"\s*(?:%|(?:function|classdef|clear|clc)\b)")
_XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:\?xml|!DOCTYPE)")


def _header(head: bytes) -> str:
    return "cpp" if _CPP.search(_COMMENTS_AND_STRINGS.sub(b" ", head)) else "c"


def _language_of_content(head: bytes) -> str | None:
    if b"<?php" in head:
        return "php"
    return _header(head) if _PREPROCESSED.search(head) else None


def _objective_c(head: bytes) -> str:
    return "matlab" if _MATLAB.match(head) and not _OBJECTIVE_C.search(head) else "objective-c"


def _typescript(head: bytes) -> str:
    # Qt uses the same extension for translations.
    return "xml" if _XML.match(head) else "typescript"


_AMBIGUOUS: dict[str, Callable[[bytes], str | None]] = {
    "h": _header,
    "inc": _language_of_content,
    "m": _objective_c,
    "ts": _typescript,
}


class FileLimits(NamedTuple):
    """What is not parsed in a project, in addition to the general rules."""

    max_bytes: int
    attributes: Attributes = Attributes()


def unfit(path: str, content: bytes, limits: FileLimits) -> str | None:
    """Why a file is not parsed, as text for the user; None if it is parsed."""
    return unfit_unread(path, len(content), limits) or _unfit_content(path, content, limits)


def unfit_unread(path: str, size: int, limits: FileLimits) -> str | None:
    """The same, as far as possible without reading the file."""
    vendored = limits.attributes.says(path, "vendored")
    if vendored is None:
        vendored = _is_vendored(path)
    if vendored:
        return "vendored"
    by_people = limits.attributes.says(path, "generated")
    if by_people or (by_people is None and generated_files.by_name(path)):
        return "generated"
    if by_people is None and path.endswith(_MINIFIED):
        return "minified"
    if size > limits.max_bytes:
        return f"larger than {limits.max_bytes:,} bytes"
    return None


# Folders whose names mean third-party code. `vendor` is also a word of business domains: it counts
# at the top, among browser assets, and before the name of a server, as in Go.
_VENDORED = re.compile(
    r"/(?:node_modules|bower_components|jspm_packages|site-packages|_vendor|_vendored|vendored"
    r"|(?:[Tt]hird|3rd)[-_]?[Pp]arty|Pods|Carthage|\.yarn)/"
    r"|^/(?:vendors?|extern)/|/vendor/[\w-]+\.[\w.-]+/"
    r"|/(?:static|_static|assets|public|js|css|javascripts|stylesheets|libs?)/(?:vendors?|extern)/"
)
# C has no package manager that would keep libraries elsewhere.
_C_LIBRARIES = re.compile(r"(?:external|deps)/")

_MINIFIED = tuple(
    f"{mark}min.{ending}" for mark in ".-" for ending in "js mjs cjs css html svg json".split()
)


def _is_vendored(path: str) -> bool:
    if _VENDORED.search("/" + path):
        return True
    return bool(_C_LIBRARIES.match(path)) and language_of(path) in ("c", "cpp")


def _unfit_content(path: str, content: bytes, limits: FileLimits) -> str | None:
    if reason := _not_text(content):
        return reason
    if limits.attributes.says(path, "generated") is False:
        return None
    if generated_files.by_header(content):
        return "generated"
    return _generated_reason(path, content) if len(content) > _FEW_BYTES else None


_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\b\x1b") + b"\x7f"


def _not_text(content: bytes) -> str | None:
    encoding = marked_encoding(content)
    if encoding in ("utf-16", "utf-32"):
        text = content[:HEAD].decode(encoding, "replace")
        # The head may end within a character.
        return "binary" if "\0" in text else "not text" if "\ufffd" in text[:-1] else None
    if content.find(b"\0", 0, HEAD) >= 0:
        return "binary"
    probe = content[:_PROBE]
    return "not text" if 10 * len(probe.translate(None, _CONTROLS)) < 9 * len(probe) else None


# Above this mean line length, no person wrote the file.
_MEAN_LINE = {"javascript": 150, "css": 150, "typescript": 200, "tsx": 200, "html": 500, "svg": 500}
_MEAN_LINE_ELSEWHERE = 1000
_SOURCE_MAP = re.compile(rb"^(?://|/\*)[#@] ?sourceMappingURL=", re.MULTILINE)


def _generated_reason(path: str, content: bytes) -> str | None:
    """Why a file looks minified or compiled from another one; None if it does not."""
    language = language_of(path)
    if not _has_lines(content, _MEAN_LINE.get(language or "", _MEAN_LINE_ELSEWHERE)):
        return "minified"
    if language not in ("javascript", "css"):
        return None
    if _SOURCE_MAP.search(content, len(content) - _TAIL):
        return "generated"
    # A licence in short lines at the top does not make it readable.
    if not _has_lines(content, _READABLE_MEAN_LINE):
        long = sum(len(line) for line in content.split(b"\n") if len(line) > _LONG_LINE)
        return "minified" if 2 * long > len(content) else None
    return None


def _has_lines(content: bytes, mean: int) -> bool:
    """Whether the mean line length is at most `mean`. Stops as soon as the result is certain."""
    enough = len(content) // mean
    return len(content.split(b"\n", enough)) > enough
