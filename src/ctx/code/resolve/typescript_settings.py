"""The settings for imports: `tsconfig.json`, `jsconfig.json` and `package.json`.

They may be untrusted: values of an unexpected shape are ignored.
"""

import posixpath
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ctx.code.packages.manifest_files import joined, table_of, tables_of, text_of, texts_of
from ctx.code.resolve.world import World
from ctx.hosts.json_fields import fields_of, parsed

_NAMES = ("tsconfig.json", "jsconfig.json")
_DEEPEST = 10
_MOST_TARGETS = 200
_NO_PACKAGE = frozenset({"node_modules", "fixtures", "__fixtures__", "templates", "testdata"})
# Strings are matched whole, so that they keep what looks like a comment.
_COMMENT = re.compile(r'("(?>(?:[^"\\\n]|\\.)*)")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING = re.compile(r'("(?>(?:[^"\\\n]|\\.)*)")|,(?=\s*[}\]])')


def tolerant_json(text: str) -> dict[str, Any]:
    """JSON with comments and trailing commas, as TypeScript reads it; empty if it is invalid."""
    bare = _COMMENT.sub(lambda match: match.group(1) or " ", text.removeprefix("\ufeff"))
    bare = _TRAILING.sub(lambda match: match.group(1) or "", bare)
    return dict(fields_of(parsed(bare)))


class Paths(NamedTuple):
    """How one configuration maps module names to paths, all relative to the project's root."""

    base: str | None
    """The folder that names may be relative to."""
    mapped: tuple[tuple[str, tuple[str, ...]], ...]
    """Patterns with at most one `*`, each with its replacements, the most specific first."""

    def candidates(self, module: str) -> Iterator[str]:
        for pattern, targets in self.mapped:
            before, star, after = pattern.partition("*")
            if not star:
                if module == pattern:
                    yield from targets
                continue
            is_long_enough = len(module) >= len(before) + len(after)
            if is_long_enough and module.startswith(before) and module.endswith(after):
                part = module[len(before) : len(module) - len(after)]
                for target in targets:
                    yield target.replace("*", part, 1)
        if self.base is not None:
            yield posixpath.normpath(posixpath.join(self.base, module))


_NONE = Paths(None, ())


class Configurations:
    """The `tsconfig.json` of each folder, read on demand."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._of_folder: dict[str, list[Paths]] = {}

    def around(self, folder: str) -> list[Paths]:
        """The configurations for the files of a folder: the nearest, then those of its parents."""
        known = self._of_folder.get(folder)
        if known is None:
            known = [] if not folder else self.around(folder.rpartition("/")[0])
            for name in _NAMES:
                path = f"{folder}/{name}" if folder else name
                if path in self._world.ids:
                    paths = self._read(path, set())
                    known = [paths, *known] if paths != _NONE else known
                    break
            self._of_folder[folder] = known
        return known

    def _read(self, path: str, visited: set[str]) -> Paths:
        content = self._world.content(path)
        if content is None or path in visited or len(visited) >= _DEEPEST:
            return _NONE
        visited.add(path)
        settings = tolerant_json(content.decode("utf-8", "replace"))
        folder = path.rpartition("/")[0]
        options = table_of(settings, "compilerOptions")
        inherited = _NONE
        for parent in texts_of(settings, "extends") or [text_of(settings, "extends")]:
            if parent_path := self._settings(folder, parent):
                inherited = _merge_paths(self._read(parent_path, visited), inherited)
        if not options.get("paths") and not options.get("baseUrl"):
            # If a configuration only references others, those apply.
            for reference in tables_of(settings, "references"):
                if parent_path := self._settings(folder, text_of(reference, "path")):
                    inherited = _merge_paths(inherited, self._read(parent_path, visited))
        return _merge_paths(_own_paths(options, folder, inherited.base), inherited)

    def _settings(self, folder: str, name: str) -> str | None:
        """The path of the configuration that another one names."""
        path = joined(folder or ".", name) if name.startswith(".") else None
        if path is None:
            return None
        for candidate in (path, f"{path}.json", f"{path}/tsconfig.json"):
            if candidate in self._world.ids:
                return candidate
        return None


def _own_paths(options: Any, folder: str, inherited_base: str | None) -> Paths:
    base = joined(folder or ".", text_of(options, "baseUrl"))
    against = base or inherited_base or folder or "."
    mapped = []
    for pattern in table_of(options, "paths"):
        targets = (joined(against, target) for target in texts_of(options, "paths", pattern))
        mapped.append((pattern, tuple(target for target in targets if target)))
    mapped.sort(key=lambda entry: ("*" in entry[0], -len(entry[0].partition("*")[0])))
    return Paths(base, tuple(mapped[:_MOST_TARGETS]))


def _merge_paths(own: Paths, inherited: Paths) -> Paths:
    base = own.base if own.base is not None else inherited.base
    return Paths(base, own.mapped or inherited.mapped)


class NodePackage(NamedTuple):
    """A package of the project: its folder, empty for the root, and its manifest."""

    folder: str
    settings: dict[str, Any]

    def entries(self, way: str) -> Iterator[str]:
        """The files behind an entry point, such as `.` or `./parts`, relative to the root."""
        exports = self.settings.get("exports")
        for target in _export_targets(exports, way):
            yield from self._written_as(target)
        if way == ".":
            for key in ("source", "types", "typings", "module", "main"):
                if target := text_of(self.settings, key):
                    yield from self._written_as(target)
            inside = ["src/index", "index", "src/main", "lib/index"]
        else:
            rest = way.removeprefix("./")
            inside = [rest, f"src/{rest}", f"lib/{rest}"]
        for name in inside:
            if path := joined(self.folder or ".", name):
                yield path

    def _written_as(self, target: str) -> Iterator[str]:
        """A path of the package, and its source if it is a build output."""
        path = target.removeprefix("./")
        names = path.split("/")
        places = [path]
        for number, name in enumerate(names[:-1]):
            if name in _BUILT:
                rest = "/".join(names[number + 1 :])
                places += ["/".join((*names[:number], "src", rest)), f"src/{rest}"]
                break
        for place in places:
            if target_path := joined(self.folder or ".", place):
                yield target_path


_BUILT = frozenset({"dist", "lib", "build", "out", "esm", "cjs", "es", "types"})


def _export_targets(exports: Any, way: str) -> Iterator[str]:
    """The targets of an entry point in `exports`, which is a path or a tree of entry points and
    conditions."""
    waiting: list[tuple[Any, str]] = [(exports, "")]
    for _ in range(_MOST_TARGETS):
        if not waiting:
            return
        value, part = waiting.pop()
        if isinstance(value, str):
            if way == "." or value is not exports:
                yield value.replace("*", part)
        elif isinstance(value, list):
            waiting += [(nested, part) for nested in reversed(value)]
        elif isinstance(value, dict):
            inner = []
            for key, nested in value.items():
                before, star, after = key.partition("*")
                if not key.startswith("."):
                    if way == "." or value is not exports:
                        inner.append((nested, part))
                elif key == way:
                    inner.append((nested, ""))
                elif star and way.startswith(before) and way.endswith(after):
                    inner.append((nested, way[len(before) : len(way) - len(after)]))
            waiting += reversed(inner)


def packages(world: World) -> dict[str, list[NodePackage]]:
    """The packages of a project, by name."""
    by_name: dict[str, list[NodePackage]] = {}
    for path in world.ids:
        folder, _, name = path.rpartition("/")
        if name != "package.json" or not _NO_PACKAGE.isdisjoint(folder.split("/")):
            continue
        manifest = tolerant_json((world.content(path) or b"").decode("utf-8", "replace"))
        if called := text_of(manifest, "name"):
            by_name.setdefault(called, []).append(NodePackage(folder, manifest))
    return by_name
