"""Follow expressions from name to name, and resolve every mention of a file."""

import re
from collections.abc import Callable
from typing import NamedTuple

from ctx.code.resolve.rules import OUTSIDE, TYPES, MaybeValue, ResolutionRules, Value
from ctx.code.resolve.world import SourceFile, World
from ctx.code.source_model import CALL, REFERENCE, TYPE, NameMention, SourceImport
from ctx.code.vocabulary import CALLS, HIGH, IMPLEMENTS, IMPORTS, LOW, MEDIUM, REFERENCES, USES_TYPE

_PARTS = re.compile(r"#?[\w$]+!?|\(\)|\[\]|\?")
_NOTHING: dict[str, int | SourceImport | str] = {}
_DEEPEST = 100
_MOST_STEPS = 3_000
_NO_CIRCLE = 1_000_000
_MOST_CANDIDATES = 3
_MOST_REMEMBERED = 20_000


Key = tuple[int, int, str]
"""A question: a file, an item in it, and what is asked about it. Members have a dot as prefix."""

_FILE, _IMPORT = -1, -2
"""Used instead of an item: the meaning of a name in the whole file, and the target of an import."""


class ResolvedNames(NamedTuple):
    """The meaning of the mentions of one file."""

    edges: dict[tuple[int, int, int], list[int]]
    """From source, label and target to confidence, line, and count."""
    targets: list[int]
    """The target of each import; 0 for outside of the repository."""


_LABELS = {CALL: CALLS, TYPE: USES_TYPE, REFERENCE: REFERENCES}


class _Edges:
    """The edges of a file, without duplicates."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self.by_ends: dict[tuple[int, int, int], list[int]] = {}

    def add(self, place: int, label: int, target: int, sure: int, line: int, times: int) -> None:
        source = self._file.item_id(place)
        known = self.by_ends.get((source, label, target))
        if known is None:
            if source != target:
                self.by_ends[source, label, target] = [sure, line, times]
        else:
            known[0] = max(known[0], sure)
            known[1] = min(known[1], line)
            known[2] += times


class Evaluator:
    """Evaluates expressions for one language."""

    def __init__(self, world: World, rules: type[ResolutionRules]) -> None:
        self._rules = rules(world, self)
        self._known: dict[Key, MaybeValue] = {}
        self._parts: dict[str, list[str]] = {}
        self._open: dict[Key, int] = {}
        """The questions being answered, and their depth in the stack."""
        self._circle = _NO_CIRCLE
        """The outermost open question that was asked again since the current one began."""
        self._steps = 0

    def resolve(self, file: SourceFile, mentions: tuple[NameMention, ...]) -> ResolvedNames:
        """All edges that begin in a file."""
        if len(self._known) > _MOST_REMEMBERED:
            self._known.clear()
        edges = _Edges(file)
        targets = self._imports(file, edges)
        for place, item in enumerate(file.items):
            # The base of a method is the type that it is defined outside of.
            for base in item.bases if item.kind != "method" else ():
                self._steps = 0
                value = self.expression(file, max(item.parent, 0), base)
                if value is not None and value is not OUTSIDE and not value[0]:
                    edges.add(place, IMPLEMENTS, value[1].item_id(value[2]), HIGH, item.line, 1)
        follow, split = self._follow, self._split
        for mention in mentions:
            self._steps = 0
            kind, text = mention.kind, mention.expression
            value = follow(file, mention.scope, split(text))
            if value is OUTSIDE:
                continue
            if value is None:
                if kind == CALL:
                    for target, sure in self._guess(file, mention.scope, text):
                        edges.add(mention.scope, CALLS, target, sure, mention.line, mention.times)
            elif not value[0]:
                target = value[1].item_id(value[2])
                label = _LABELS[kind]
                edges.add(mention.scope, label, target, HIGH, mention.line, mention.times)
        return ResolvedNames(edges.by_ends, targets)

    def _imports(self, file: SourceFile, edges: "_Edges") -> list[int]:
        targets = []
        for import_ in file.facts.imports:
            self._steps = 0
            imported = self._target(file, import_)
            leads = 0
            if imported is not None and imported is not OUTSIDE:
                for value in self._rules.import_targets(file, import_, imported):
                    target = value[1].item_id(value[2])
                    leads = leads or target
                    if value[1] is not file:
                        edges.add(import_.scope, IMPORTS, target, HIGH, import_.line, 1)
            targets.append(leads)
        return targets

    def _guess(self, file: SourceFile, scope: int, text: str) -> list[tuple[int, int]]:
        """The candidates for a call of a member of something unknown: the items of that name, if
        there are few."""
        parts = self._split(text)
        name = parts[-1]
        is_plain = "." not in text and not self._rules.names_are_global
        if is_plain or len(name) < 3 or self._rules.is_common(file, name):
            return []
        candidates = self._rules.namesakes(file, name)
        if not 0 < len(candidates) <= _MOST_CANDIDATES:
            return []
        is_likely = len(candidates) == 1 and not self._is_unresolved_import(file, scope, parts[0])
        return [(target, MEDIUM if is_likely else LOW) for target, _ in candidates]

    def _is_unresolved_import(self, file: SourceFile, scope: int, name: str) -> bool:
        """Whether a name comes from an import that leads nowhere."""
        while scope >= 0:
            meant = file.names.get(scope, _NOTHING).get(name)
            if meant is not None:
                return isinstance(meant, SourceImport) and self._target(file, meant) is None
            scope = file.items[scope].parent
        return False

    def _split(self, text: str) -> list[str]:
        parts = self._parts.get(text)
        if parts is None:
            if len(self._parts) > _MOST_REMEMBERED:
                self._parts.clear()
            parts = self._parts[text] = _PARTS.findall(text) or ["?"]
        return parts

    # Expressions

    def expression(self, file: SourceFile, scope: int, text: str) -> MaybeValue:
        """The meaning of an expression in an item of a file."""
        key = (file.id, scope, text)
        known = self._known
        if key in known:
            return known[key]
        return self._answer(key, self._follow, file, scope, self._split(text))

    def _answer(self, key: Key, answer: Callable[..., MaybeValue], *about: object) -> MaybeValue:
        """Answer a question, and cache the answer.

        Code is circular: modules import each other, a variable is assigned from itself. A question
        that is already open has no answer yet; conclusions from that hold only on the current path
        and are not cached. So an answer never depends on the order of questions.
        """
        depth = len(self._open)
        self._steps += 1
        if key in self._open or depth >= _DEEPEST or self._steps > _MOST_STEPS:
            self._circle = min(self._circle, self._open.get(key, -1))
            return None
        before, self._circle = self._circle, _NO_CIRCLE
        self._open[key] = depth
        try:
            value = answer(*about)
        finally:
            del self._open[key]
        if self._circle >= depth:
            self._known[key] = value
            self._circle = before
        else:
            self._circle = min(before, self._circle)
        return value

    def _follow(self, file: SourceFile, scope: int, parts: list[str]) -> MaybeValue:
        first, rest = parts[0], parts[1:]
        if first == "super" and rest[:1] == ["()"] and rest[1:]:
            value, rest = self._rules.inherited(file, scope, rest[1]), rest[2:]
        else:
            value = self.name(file, scope, first) if first != "?" else None
        for part in rest:
            if value is None or value is OUTSIDE:
                return value
            if part == "()":
                value = self.call(value)
            elif part == "[]":
                return None
            else:
                value = self.member(value, part)
        return value

    def name(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        """The meaning of a name in an item of a file: the innermost definition."""
        rules = self._rules
        if name in rules.receivers:
            value = rules.receiver(file, scope, name)
            if value is not None:
                return value
        place = scope
        items, names = file.items, file.names
        while place > 0:
            item = items[place]
            if item.type == f"={item.name}" and place != scope:
                # An object that is its own type: its members are reached only through its name.
                value = None
            elif item.kind in TYPES and (rules.members_are_visible or place != scope):
                value = None
                if rules.members_are_visible:
                    value = self.member((True, file, place), name)
            else:
                here = names.get(place)
                meant = here.get(name) if here else None
                value = None if meant is None else self._meaning(file, place, meant)
            if value is not None:
                return value
            place = item.parent
        key = (file.id, _FILE, name)
        if key in self._known:
            return self._known[key]
        return self._answer(key, self._in_file, file, name)

    def _in_file(self, file: SourceFile, name: str) -> MaybeValue:
        """The meaning of a name anywhere in a file."""
        value = self._own_member(file, 0, name)
        if value is None:
            value = self._rules.implicit(file, name)
        return value if value is not None else self._through_stars(file, name)

    def _own_member(self, file: SourceFile, place: int, name: str) -> MaybeValue:
        """The meaning of a name by the direct content of an item."""
        here = file.names.get(place)
        meant = here.get(name) if here else None
        return None if meant is None else self._meaning(file, place, meant)

    def _meaning(self, file: SourceFile, place: int, meant: int | SourceImport | str) -> MaybeValue:
        if type(meant) is int:
            return False, file, meant
        if type(meant) is str:
            return self.typed(file, place, meant)
        assert isinstance(meant, SourceImport)
        return self._target(file, meant)

    def _target(self, file: SourceFile, import_: SourceImport) -> MaybeValue:
        key = (file.id, _IMPORT - import_.scope, f"{import_.module} {import_.item} {import_.bound}")
        if key in self._known:
            return self._known[key]
        return self._answer(key, self._rules.target, file, import_)

    def _through_stars(self, file: SourceFile, name: str) -> MaybeValue:
        value: MaybeValue = None
        for star in file.stars:
            module = self._target(file, star)
            if module is OUTSIDE:
                # It may come from there.
                value = OUTSIDE
            elif module is not None and module[1] is not file:
                through = self.member(module, name)
                if through is not None and through is not OUTSIDE:
                    return through
        return value

    # Types, calls and members

    def typed(self, file: SourceFile, scope: int, type_: str) -> MaybeValue:
        """What a binding holds; see `source_model.Binding.type`."""
        if type_[0] == "=":
            return self.expression(file, scope, type_[1:])
        value = self.expression(file, scope, type_)
        if value is None or value is OUTSIDE or type_[-1] == ")":
            return value
        return self._one_of(value)

    def _one_of(self, value: Value) -> MaybeValue:
        """An instance of a type."""
        _, file, place = value
        item = file.items[place]
        if item.kind == "type_alias" and item.type:
            # A separate question: an alias may lead to itself.
            key = (file.id, place, "=")
            if key in self._known:
                return self._known[key]
            return self._answer(key, self.typed, file, item.parent, item.type)
        return True, file, place

    def call(self, value: Value) -> MaybeValue:
        """The result of calling something."""
        is_one, file, place = value
        item = file.items[place]
        visited: set[tuple[int, int]] = set()
        while item.kind in ("static", "const"):
            held = self.read(value)
            if held is None or held is OUTSIDE:
                return held
            # A variable that holds itself, as in `str = str`, leads nowhere.
            if held[0] or (file.id, place) in visited:
                return None
            visited.add((file.id, place))
            value = held
            is_one, file, place = held
            item = file.items[place]
        if item.kind in TYPES:
            return None if is_one else (True, file, place)
        if item.kind == "type_alias":
            # A conversion.
            return self._one_of(value)
        if not item.type:
            return None
        return self.typed(file, place, item.type)

    def read(self, value: Value) -> MaybeValue:
        """What a variable holds, or what a property returns."""
        is_one, file, place = value
        item = file.items[place]
        if is_one or item.kind in TYPES or place == 0 or item.kind == "module":
            return value
        return self.typed(file, max(item.parent, 0), item.type) if item.type else None

    def member(self, value: Value, name: str) -> MaybeValue:
        """The meaning of a name after a dot."""
        key = (value[1].id, value[2], "." + name)
        if key in self._known:
            return self._known[key]
        return self._answer(key, self._member, value, name)

    def _member(self, value: Value, name: str) -> MaybeValue:
        held = self.read(value)
        if held is None or held is OUTSIDE:
            return held
        _, file, place = held
        if place == 0 or file.items[place].kind == "module":
            member = self._own_member(file, place, name)
            if member is None:
                member = self._rules.within(file, name)
            return member if member is not None else self._through_stars(file, name)
        return self._of_type(file, place, name, set())

    def _of_type(
        self, file: SourceFile, place: int, name: str, visited: set[tuple[int, int]]
    ) -> MaybeValue:
        """A member of a type, its own or inherited."""
        if (file.id, place) in visited or len(visited) > 50:
            return None
        visited.add((file.id, place))
        for where, container in (*self._rules.containers(file, place), (file, place)):
            value = self._own_member(where, container, name)
            if value is not None:
                return value
        return self._of_bases(file, place, name, visited)

    def inherited(self, file: SourceFile, place: int, name: str) -> MaybeValue:
        """An inherited member of a type, whether or not the type overrides it."""
        return self._of_bases(file, place, name, {(file.id, place)})

    def _of_bases(
        self, file: SourceFile, place: int, name: str, visited: set[tuple[int, int]]
    ) -> MaybeValue:
        beyond: MaybeValue = None
        for base in self._rules.bases(file, place):
            if base is OUTSIDE:
                # A member that is not found here may be found there.
                beyond = OUTSIDE
            elif base is not None and base[1].items[base[2]].kind in TYPES:
                value = self._of_type(base[1], base[2], name, visited)
                if value is OUTSIDE:
                    beyond = OUTSIDE
                elif value is not None:
                    return value
        return beyond
