"""Where Python's imports lead."""

import builtins
import io
import sys
from collections.abc import Iterable

from ctx.code.resolve.evaluator import Evaluator
from ctx.code.resolve.rules import (
    OUTSIDE,
    MaybeValue,
    ResolutionRules,
    Value,
    class_around,
    file_value,
)
from ctx.code.resolve.world import SourceFile, World
from ctx.code.source_model import SourceImport

_MOST_MODULES = 2_000


class PythonRules(ResolutionRules):
    languages = ("python",)
    receivers = frozenset({"self", "cls", "super", "Self"})
    builtins = frozenset(dir(builtins))
    common = frozenset(
        name
        for type_ in (str, bytes, list, dict, set, tuple, int, float, object, io.StringIO)
        for name in dir(type_)
    )

    def __init__(self, world: World, evaluator: Evaluator) -> None:
        super().__init__(world, evaluator)
        self._roots: dict[str, list[str]] = {}
        self._modules: dict[tuple[str, str], MaybeValue] = {}
        packages = {path.rpartition("/")[0] for path in world.ids if path.endswith("/__init__.py")}
        for path in world.ids:
            if not path.endswith((".py", ".pyi")):
                continue
            folder, _, name = path.rpartition("/")
            if folder in packages:
                # A top-level package is found by its name.
                while (above := folder.rpartition("/"))[0] in packages:
                    folder = above[0]
                root, _, top = folder.rpartition("/")
            else:
                root, top = folder, name.partition(".")[0]
            roots = self._roots.setdefault(top, [])
            if root not in roots:
                roots.append(root)

    def module(self, file: SourceFile, module: str) -> MaybeValue:
        key = (file.path if module.startswith(".") else file.path.rpartition("/")[0], module)
        if key not in self._modules:
            if len(self._modules) >= _MOST_MODULES:
                # Each entry keeps a file in memory.
                self._modules.clear()
            self._modules[key] = self._module(file, module)
        return self._modules[key]

    def _module(self, file: SourceFile, module: str) -> MaybeValue:
        name = module.lstrip(".")
        if name != module:
            folder = file.path
            for _ in range(len(module) - len(name)):
                folder = folder.rpartition("/")[0]
            value = self._module_at(_join(folder, name.replace(".", "/")))
            return value if value is not None else OUTSIDE
        top = name.partition(".")[0]
        here = file.path.rpartition("/")[0]
        # Of two packages with one name, the nearest one.
        roots = sorted(self._roots.get(top, ()), key=lambda root: -_common(root, here))
        if top in sys.stdlib_module_names:
            # Python finds its own module before one that is somewhere in the repository.
            roots = [root for root in roots if root in ("", "src", "lib", here)]
        path = name.replace(".", "/")
        for root in roots:
            value = self._module_at(_join(root, path))
            if value is not None:
                return value
        if name != top:
            # A folder without `__init__.py` is a package too, from any root.
            while True:
                value = self._module_at(_join(here, path))
                if value is not None or not here:
                    break
                here = here.rpartition("/")[0]
            if value is not None:
                return value
        return None if roots else OUTSIDE

    def _module_at(self, path: str) -> MaybeValue:
        for ending in ("/__init__.py", ".py", ".pyi"):
            if module := file_value(self.world.at(path.strip("/") + ending)):
                return module
        return None

    def target(self, file: SourceFile, import_: SourceImport) -> MaybeValue:
        if import_.item in ("", "*"):
            module = import_.module
            if not import_.item and import_.bound == module.partition(".")[0]:
                # `import a.b` binds `a`.
                module = import_.bound
            return self.module(file, module)
        target_module = self.module(file, import_.module)
        if target_module is not None and target_module is not OUTSIDE:
            # A definition in a file takes precedence over a submodule of that name.
            inside = self.evaluator.member(target_module, import_.item)
            if inside is not None:
                return inside
            return None
        dot = "" if import_.module.endswith(".") else "."
        within = self.module(file, f"{import_.module}{dot}{import_.item}")
        return within if within is not None and within is not OUTSIDE else target_module

    def import_targets(
        self, file: SourceFile, import_: SourceImport, value: Value
    ) -> Iterable[Value]:
        if import_.item:
            return (value,)
        # `import a.b` binds `a`, and its target is `a.b`.
        whole = self.module(file, import_.module)
        return (value if whole is None or whole is OUTSIDE else whole,)

    def within(self, file: SourceFile, name: str) -> MaybeValue:
        if not file.path.endswith("__init__.py"):
            return None
        return self._module_at(_join(file.path.rpartition("/")[0], name))

    def receiver(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        place = class_around(file, scope)
        if not place:
            return None
        if name == "super":
            return OUTSIDE
        return name == "self", file, place

    def inherited(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        place = class_around(file, scope)
        if not place or all(base is None for base in self.bases(file, place)):
            return OUTSIDE
        return self.evaluator.inherited(file, place, name)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder and name else folder or name


def _common(one: str, other: str) -> int:
    """How many leading folders two folder paths share."""
    number = 0
    for first, second in zip(one.split("/"), other.split("/"), strict=False):
        if first != second:
            break
        number += 1
    return number


RULES = PythonRules
