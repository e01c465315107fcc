"""What Rust's paths refer to, and the implementations of a type, which may be anywhere in its
crate."""

from collections.abc import Iterable, Iterator

from ctx.code.resolve.evaluator import Evaluator
from ctx.code.resolve.rules import OUTSIDE, TYPES, MaybeValue, ResolutionRules, Value, class_around
from ctx.code.resolve.rust_modules import Modules
from ctx.code.resolve.world import SourceFile, World
from ctx.code.source_model import SourceImport

Spot = tuple[SourceFile, int]

# The usual names of type parameters in blanket implementations.
_ANY = (*"ABCDEFGHIKLMNOPQRSTUVWXY", "St", "Si", "Fut", "Ty", "This")


class RustRules(ResolutionRules):
    languages = ("rust",)
    receivers = frozenset({"self", "Self", "crate", "super", *_ANY})
    builtins = frozenset(
        "Option Result Some None Ok Err Vec String Box Default Clone Copy Send Sync Sized Drop Fn"
        " FnMut FnOnce Iterator IntoIterator Extend DoubleEndedIterator ExactSizeIterator Into"
        " From TryFrom TryInto AsRef AsMut ToOwned ToString PartialEq PartialOrd Eq Ord Unpin"
        " drop std core alloc proc_macro test u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128"
        " isize f32 f64 bool char str".split()
    )
    common = frozenset(
        "abs add all and and_then any append as_bytes as_mut as_ptr as_ref as_slice as_str"
        " borrow borrow_mut bytes cancel capacity cast ceil chain chars checked_add clear clone"
        " close cloned cmp collect compare_exchange connect contains contains_key copied count"
        " cycle default deref div drain drop elapsed ends_with entry enumerate eq err expect"
        " extend fetch_add fetch_sub fill filter filter_map find first flat_map flatten flush"
        " fmt fold for_each from get get_mut get_or_insert_with get_ref hash id index insert"
        " inspect into into_inner into_iter is_empty is_err is_none is_ok is_some iter iter_mut"
        " join keys kill last len lines load lock lock_owned map map_err max min mul name ne"
        " new next next_back nth ok ok_or ok_or_else open or_else parse path peek pin poll pop"
        " position pow push push_back push_str read recv remove repeat replace reserve resize"
        " retain rev rposition run select send set shutdown size_hint skip sleep sort spawn"
        " split starts_with step_by store sub sum swap take then then_some timeout to_owned"
        " to_string to_vec trim truncate try_from try_into try_lock try_recv try_send unwrap"
        " unwrap_or unwrap_or_default unwrap_or_else unzip values wait wake wake_by_ref with"
        " with_capacity write zip".split()
    )

    def __init__(self, world: World, evaluator: Evaluator) -> None:
        super().__init__(world, evaluator)
        self._modules = Modules(world)
        self._implementations: dict[tuple[int, int], tuple[Spot, ...]] = {}
        self._for_any: dict[object, list[Value]] | None = None

    # Modules

    def target(self, file: SourceFile, import_: SourceImport) -> MaybeValue:
        scope = self._modules.around(file, import_.scope)
        if import_.module.startswith('"'):
            return self._modules.at(file, scope, import_.module.strip('"'))
        if not import_.item and import_.module == f"self::{import_.bound}":
            return self._modules.below(file, scope, import_.bound)
        path = import_.module.split("::")
        if import_.item not in ("", "*"):
            path.append(import_.item)
        value = self._first_segment(file, scope, path[0])
        for part in path[1:-1]:
            if value is None or value is OUTSIDE:
                return value
            value = self._module_member(value, part)
        if value is None or value is OUTSIDE or len(path) == 1:
            return value
        module, value = value, self.evaluator.member(value, path[-1])
        return value if value is not None else self._macro(module[1], path[-1])

    def _module_member(self, module: Value, name: str) -> MaybeValue:
        if name == "super":
            return self._modules.above(module[1], module[2])
        _, file, place = module
        below = None
        if place == 0 or file.items[place].kind == "module":
            below = self._modules.below(file, place, name)
        return below if below is not None else self.evaluator.member(module, name)

    def _first_segment(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        if name == "self":
            return False, file, scope
        if name in ("crate", "super"):
            return self.receiver(file, scope, name)
        # A function may have the name of its module: before `::` it is the module.
        below = self._modules.below(file, scope, name)
        return below if below is not None else self.evaluator.name(file, scope, name)

    def implicit(self, file: SourceFile, name: str) -> MaybeValue:
        if name in self.builtins:
            return OUTSIDE
        if name.endswith("!"):
            imported = file.imported(0, name[:-1])
            return self.target(file, imported) if imported else self._macro(file, name[:-1])
        return self._modules.crate_called(file, name)

    def within(self, file: SourceFile, name: str) -> MaybeValue:
        if name == "super":
            return self._modules.above(file, 0)
        if name.endswith("!"):
            return self._macro(file, name[:-1])
        return self._modules.below(file, 0, name)

    def _macro(self, file: SourceFile, name: str) -> MaybeValue:
        """A macro is visible in the text of its module, or at the root of its crate: one of the
        package, or the only one anywhere."""
        macros = [
            macro
            for macro in self.world.named(name)
            if macro.kind == "macro" and self.world.languages.get(macro.file_id) == "rust"
        ]
        home = self._modules.home(file.path)
        near = [
            macro for macro in macros if self._modules.home(self.world.path(macro.file_id)) == home
        ]
        for macro in near or (macros if len(macros) == 1 else ()):
            where = self.world.file(macro.file_id)
            for place, item in enumerate(where.items if where else ()):
                if where and item.kind == "macro" and item.name == name:
                    return False, where, place
        return None

    # Types

    def receiver(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        if name == "crate":
            return self._modules.root(file)
        if name == "super":
            return self._modules.above(file, self._modules.around(file, scope))
        if name not in ("self", "Self"):
            return self._parameter(file, scope, name)
        place = class_around(file, scope)
        if not place:
            return None
        item = file.items[place]
        if item.kind == "impl":
            spot = self._type_named(file, item.parent, item.type)
            if spot is not None:
                return name == "self", *spot
        return name == "self", file, place

    def _parameter(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        """The traits of a generic parameter of the enclosing items."""
        while scope > 0:
            type_ = file.binding(scope, name)
            if type_:
                return self.evaluator.typed(file, scope, type_)
            scope = file.items[scope].parent
        return None

    def _type_named(self, file: SourceFile, scope: int, type_: str) -> Spot | None:
        """The type with this name, if it is in the repository."""
        value = self.evaluator.expression(file, max(scope, 0), type_) if type_ else None
        if value is not None and value is not OUTSIDE:
            if value[1].items[value[2]].kind == "type_alias":
                value = self.evaluator.read(value)
            if value is not None and value is not OUTSIDE and value[2] > 0:
                return (value[1], value[2]) if value[1].items[value[2]].kind in TYPES else None
        return None

    def containers(self, file: SourceFile, place: int) -> Iterable[Spot]:
        if file.items[place].kind == "impl":
            return ()
        key = (file.id, place)
        if key not in self._implementations:
            # Empty while they are being computed.
            self._implementations[key] = ()
            spots = [
                (where, number)
                for where, number in self._named_implementations(file.items[place].name)
                if self._type_named(where, where.items[number].parent, where.items[number].type)
                == (file, place)
            ]
            # Inherent members come before trait members.
            spots.sort(key=lambda spot: bool(spot[0].items[spot[1]].bases))
            self._implementations[key] = tuple(spots)
        return self._implementations[key]

    def _named_implementations(self, name: str) -> Iterator[Spot]:
        for file_id in self.world.files_with("impl", name):
            where = self.world.file(file_id)
            if where is not None and where.facts.language == "rust":
                for number, item in enumerate(where.items):
                    if item.kind == "impl" and item.name == name:
                        yield where, number

    def bases(self, file: SourceFile, place: int) -> Iterator[MaybeValue]:
        yield from super().bases(file, place)
        if file.items[place].kind == "trait":
            yield from self._implemented_for_any().get((file.id, place), ())
            return
        for where, number in self.containers(file, place):
            item = where.items[number]
            for base in item.bases:
                if base.rpartition("::")[2] in ("Deref", "DerefMut"):
                    yield self._alias_target(where, number)
                else:
                    trait = self.evaluator.expression(where, max(item.parent, 0), base)
                    if trait is OUTSIDE:
                        yield from self._implemented_for_any().get(base.rpartition("::")[2], ())
                    yield trait

    def _alias_target(self, file: SourceFile, place: int) -> MaybeValue:
        """The target of a type alias."""
        target = file.member(place, "Target")
        if target is None or not file.items[target].type:
            return None
        return self.evaluator.typed(file, place, file.items[target].type)

    def _implemented_for_any(self) -> dict[object, list[Value]]:
        """`impl<T: A> B for T`: whatever implements the first trait implements the second. A trait
        of another package is identified by its name."""
        if self._for_any is None:
            self._for_any = {}
            for name in _ANY:
                for file, place in self._named_implementations(name):
                    able = self._parameter(file, place, name)
                    bases = file.items[place].bases
                    scope = max(file.items[place].parent, 0)
                    more = self.evaluator.expression(file, scope, bases[0]) if bases else None
                    if able is None or more is None or more is OUTSIDE:
                        continue
                    key: object = (able[1].id, able[2])
                    if able is OUTSIDE:
                        key = (file.binding(place, name) or "").rpartition("::")[2]
                    self._for_any.setdefault(key, []).append(more)
        return self._for_any


RULES = RustRules
