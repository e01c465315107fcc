"""The role of a file in a project, judged by its path."""

import re
from functools import cache, lru_cache

SOURCE, AUXILIARY, BESIDE = range(3)
"""The source itself; what surrounds it, such as settings, demos and generated files; and what is
about it: tests, documentation, examples."""

_PATHS_KEPT = 1 << 12
_BESIDE = (
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|testdata|test_data|fixtures|e2e|benches|benchmarks?"
    r"|examples?|playground|docs?|docs_src|integration)(?:/|$)"
    r"|(?:^|/)(?:test_[^/]*|[^/]*[_-]tests?|tests?|conftest)\.[a-z]+$"
    r"|\.(?:test|tests|spec|specs|bench|stories|d)\.[cm]?[jt]sx?$"
    r"|(?:^|/)[^/]*(?-i:Test|Tests|Spec|IT)\.(?:java|kt|scala|cs|swift|php)$"
    r"|\.(?:md|rst|txt|markdown|adoc|org|tex|snap)$"
)
_TEST = (
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|testdata|test_data|fixtures|e2e|integration)(?:/|$)"
    r"|(?:^|/)(?:test_[^/]*|[^/]*[_-]tests?|tests?|conftest)\.[a-z]+$"
    r"|\.(?:test|tests|spec|specs)\.[cm]?[jt]sx?$"
    r"|(?:^|/)[^/]*(?-i:Test|Tests|Spec|IT)\.(?:java|kt|scala|cs|swift|php)$"
)
_AUXILIARY = (
    r"(?:^|/)(?:demos?|dist|build|locales?|vendor|third_party|node_modules|scripts?|tools?|_vendor"
    r"|extern|\.[^/]+)/"
    r"|(?:^|/)(?:setup|conf|config|configure|setupext|versioneer|gulpfile|gruntfile|karma\.conf"
    r"|webpack\.config|rollup\.config|[^/]*\.config)\.[a-z]+$"
    r"|(?:^|/)migrations/\d[^/]*$"
)


@lru_cache(maxsize=_PATHS_KEPT)
def role_of(path: str) -> int:
    # A pattern matches at most a folder and the name in it. Folders repeat, so they are cached.
    name = path.rfind("/") + 1
    role = _role_of_folder(path[:name]) if name else SOURCE
    return role if role == BESIDE else max(role, _role(path[path.rfind("/", 0, name - 1) + 1 :]))


@lru_cache(maxsize=_PATHS_KEPT)
def _role_of_folder(folder: str) -> int:
    return _role(folder)


def _role(path: str) -> int:
    if _pattern(_BESIDE).search(path):
        return BESIDE
    return AUXILIARY if _pattern(_AUXILIARY).search(path) else SOURCE


@lru_cache(maxsize=_PATHS_KEPT)
def is_test(path: str) -> bool:
    return bool(_pattern(_TEST).search(path))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    # Compiled on demand: queries take the roles from the index.
    return re.compile(text, re.IGNORECASE)
