"""Where the includes of C and C++ lead, and what they make visible.

The compiler's options are unknown: an include is searched beside the file, and then among all files
by the end of their paths. A function that a header declares is resolved to its definition.
"""

from collections.abc import Iterable

from ctx.code.resolve.evaluator import Evaluator
from ctx.code.resolve.rules import (
    OUTSIDE,
    TYPES,
    MaybeValue,
    ResolutionRules,
    Value,
    class_around,
    file_value,
)
from ctx.code.resolve.world import SourceFile, World, normal_path
from ctx.code.source_model import SourceImport
from ctx.code.vocabulary import SLOTS

_HEADERS = tuple(".h .hh .hpp .hxx .h++ .H .inc .inl .ipp .tpp .cuh .def".split())
_ROOTS = frozenset({"include", "includes", "inc", "src", "source", "lib", ""})
_MOST_INCLUDED = 2_000
_MOST_REMEMBERED = 500
_MANY = 9
"""If a name is defined more often, the world does not return all items."""

_STANDARD = frozenset(
    "assert complex ctype errno fcntl fenv float getopt inttypes iso646 limits locale malloc math"
    " memory poll pthread sched semaphore setjmp signal stdalign stdarg stdatomic stdbool stddef"
    " stdint stdio stdlib stdnoreturn string strings tgmath threads time uchar unistd wchar wctype"
    " windows zlib".split()
)
"""System headers, even if a repository has files of the same name."""

_LIBRARY = frozenset(
    "abort abs accept access assert atexit atof atoi atol bind bsearch calloc ceil close closedir"
    " connect cos div dup dup2 errno exec exit exp fabs fclose fcntl feof ferror fflush fgetc fgets"
    " fileno floor fopen fork fprintf fputc fputs fread free freopen frexp fscanf fseek fstat fsync"
    " ftell ftruncate fwrite getc getchar getcwd getenv getline getopt getpid gettimeofday gmtime"
    " htonl htons inet_ntop inet_pton ioctl isalnum isalpha isatty isdigit islower isnan isprint"
    " isspace isupper isxdigit kill labs ldexp listen localtime log longjmp lseek malloc memchr"
    " memcmp memcpy memmove memset mkdir mktime mmap modf munmap nanosleep ntohl ntohs open opendir"
    " perror pipe poll pow printf pthread_create pthread_join pthread_mutex_lock"
    " pthread_mutex_unlock putc putchar puts qsort raise rand read readdir realloc recv remove"
    " rename rewind rmdir scanf select send setenv setjmp setsockopt shutdown sigaction signal sin"
    " sizeof sleep snprintf socket sprintf sqrt srand sscanf stat std strcasecmp strcat strchr"
    " strcmp strcpy strcspn strdup strerror strftime strlen strncasecmp strncat strncmp strncpy"
    " strpbrk strrchr strspn strstr strtod strtok strtol strtoll strtoul strtoull sysconf system"
    " tan time tolower toupper ungetc unlink usleep va_arg va_copy va_end va_start vfprintf vprintf"
    " vsnprintf vsprintf wait waitpid write".split()
)
_MEMBERS = frozenset(
    "append assign at back begin bind c_str call_once capacity cbegin cend clear close compare"
    " contains copy count crbegin data detach emplace emplace_back empty end erase fetch_add fill"
    " find first flush front get getline has_value insert is_open join key length load lock"
    " lower_bound max max_size merge min move name next notify_all notify_one open operator pop"
    " pop_back pop_front prev print push push_back push_front put rbegin read release rend reserve"
    " reset resize rfind run second seekg set shrink_to_fit size sort start stop store str string"
    " substr swap tellg test to_string top try_lock type unlock update upper_bound value value_or"
    " wait what write".split()
)


class _EveryName(frozenset[str]):
    """A method that is defined outside of its class sees the members by their plain names, so each
    name must be looked up."""

    def __contains__(self, _: object) -> bool:
        return True


class CRules(ResolutionRules):
    languages = ("c", "cpp")
    members_are_visible = True
    names_are_global = True
    builtins = _LIBRARY
    common = _LIBRARY | _MEMBERS
    receivers = _EveryName()

    def __init__(self, world: World, evaluator: Evaluator) -> None:
        super().__init__(world, evaluator)
        self._by_name: dict[str, list[str]] = {}
        for path, number in world.ids.items():
            if world.languages.get(number) in self.languages or path.endswith(_HEADERS):
                self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
        self._included: dict[int, list[int]] = {}
        self._visible: dict[int, frozenset[int]] = {}
        self._namesakes: dict[str, list[tuple[int, int, bool]]] = {}
        self._outermost: dict[int, dict[str, int]] = {}

    # Includes

    def module(self, file: SourceFile, module: str) -> MaybeValue:
        if module.startswith("::"):
            # A namespace spans many files: its items are found by their own names.
            return None
        number = self._header(file.path, module)
        return None if number is None else file_value(self.world.file(number))

    def target(self, file: SourceFile, import_: SourceImport) -> MaybeValue:
        if import_.module.startswith("::") and import_.item not in ("", "*"):
            return self._name_in_includes(file, import_.item)
        return self.module(file, import_.module)

    def _header(self, path: str, module: str) -> int | None:
        """The file that an include refers to."""
        is_system = module.startswith("<")
        name = module.strip("<>")
        here = path.rpartition("/")[0]
        if not is_system:
            beside = normal_path(f"{here}/{name}")
            if beside in self.world.ids:
                return self.world.ids[beside]
        name = normal_path(name)
        ending = "/" + name
        files = [
            header_path
            for header_path in self._by_name.get(name.rpartition("/")[2], ())
            if header_path == name or header_path.endswith(ending)
        ]
        if is_system:
            stem = name.partition(".")[0]
            files = [
                file
                for file in files
                if stem not in _STANDARD and _root(file, name).rpartition("/")[2] in _ROOTS
            ]
        if not files:
            return None
        # Among several files, the nearest one.
        nearest = min(files, key=lambda file: (-_common(file, path), file.count("/"), file))
        return self.world.ids[nearest]

    def _includes(self, number: int) -> list[int]:
        """The files that a file includes directly."""
        known = self._included.get(number)
        if known is None:
            file = self.world.file(number)
            known = []
            for import_ in file.facts.imports if file else ():
                if not import_.module.startswith("::"):
                    header = self._header(self.world.path(number), import_.module)
                    if header is not None and header not in known:
                        known.append(header)
            self._included[number] = known
        return known

    def _included_files(self, number: int) -> frozenset[int]:
        """A file, and all files that it includes transitively."""
        known = self._visible.get(number)
        if known is None:
            if len(self._visible) >= _MOST_REMEMBERED:
                self._visible.clear()
            visited, waiting = {number}, [number]
            while waiting and len(visited) < _MOST_INCLUDED:
                for header in self._includes(waiting.pop()):
                    if header not in visited:
                        visited.add(header)
                        waiting.append(header)
            known = self._visible[number] = frozenset(visited)
        return known

    # Names

    def implicit(self, file: SourceFile, name: str) -> MaybeValue:
        value = self._name_in_includes(file, name)
        if value is None and len(self.world.named(name)) < _MANY:
            # `class Name;` declares that there is one somewhere.
            types = [candidate for candidate in self._candidates(name) if _is_type(candidate)]
            value = types[0] if len(types) == 1 else None
        return value if value is not None else super().implicit(file, name)

    def within(self, file: SourceFile, name: str) -> MaybeValue:
        """The items of a namespace, which continues in other files."""
        inner = self._outer(file).get(name)
        if inner is not None and file.items[inner].kind == "module":
            return False, file, inner
        value = self._name_in_includes(file, name)
        if value is None:
            candidates = [
                candidate for candidate in self._candidates(name) if not _is_hidden(candidate)
            ]
            value = candidates[0] if len(candidates) == 1 else None
        return value

    def _name_in_includes(self, file: SourceFile, name: str) -> MaybeValue:
        """The meaning of a name among the included files."""
        files = self._included_files(file.id)
        if len(self.world.named(name)) < _MANY:
            visible = [value for value in self._candidates(name) if value[1].id in files]
        else:
            visible = self._values_in_files(files, name)
        if not visible:
            return None
        # A nearer header was written for this file.
        visible.sort(
            key=lambda value: (
                value[1].id != file.id,
                -_common(value[1].path, file.path),
                value[1].path,
            )
        )
        best = visible[0]
        kind = best[1].items[best[2]].kind
        if kind == "function" and best[1].path.endswith(_HEADERS):
            return self._definition(name, best)
        return best

    def _values_in_files(self, files: Iterable[int], name: str) -> list[Value]:
        values: list[Value] = []
        for number in files:
            file = self.world.file(number)
            place = self._outer(file).get(name) if file else None
            if file and place is not None:
                values.append((False, file, place))
        return values

    def _candidates(self, name: str) -> list[Value]:
        """The items with a name outside of any type, in files of these languages."""
        languages = self.world.languages
        numbers = {namesake.file_id for namesake in self.world.named(name)}
        return self._values_in_files(
            sorted(number for number in numbers if languages.get(number) in self.languages), name
        )

    def _outer(self, file: SourceFile) -> dict[str, int]:
        """The items of a file outside of types and functions, by name; a type comes first."""
        known = self._outermost.get(file.id)
        if known is None:
            known = {}
            is_open = [True] * len(file.items)
            for place, item in enumerate(file.items):
                if place == 0:
                    continue
                inside = is_open[item.parent]
                is_open[place] = inside and item.kind == "module"
                if not inside or item.kind == "method":
                    continue
                before = known.get(item.name)
                if before is None or file.items[before].kind not in TYPES:
                    known[item.name] = place
                if item.kind == "module" and "::" in item.name:
                    for part in item.name.split("::"):
                        known.setdefault(part, place)
            self._outermost[file.id] = known
        return known

    def _definition(self, name: str, declared: Value) -> Value:
        """The definition of a function that a header declares."""
        header = declared[1].path
        definitions = [
            value
            for value in self._candidates(name)
            if not value[1].path.endswith(_HEADERS)
            and value[1].items[value[2]].kind == "function"
            and not _is_hidden(value)
        ]
        same = [value for value in definitions if _stem(value[1].path) == _stem(header)]
        if len(same) == 1:
            return same[0]
        return definitions[0] if len(definitions) == 1 else declared

    def receiver(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        """What `this` refers to, and what a method sees that is defined outside of its class."""
        if file.facts.language == "c":
            return None
        if name == "std":
            return OUTSIDE
        items, place = file.items, scope
        while place > 0 and not (items[place].kind == "method" and items[place].bases):
            if name != "this" and name in file.names.get(place, ()):
                return None
            place = items[place].parent
        if place <= 0:
            around = class_around(file, scope) if name == "this" else 0
            return (True, file, around) if around else None
        if name != "this" and name in file.names.get(place, ()):
            return None
        owner = self._owner(file, place)
        if owner is None or name == "this":
            return owner
        if name == owner[1].items[owner[2]].name:
            # The class itself, not its constructor.
            return False, owner[1], owner[2]
        return self.evaluator.member(owner, name)

    def _owner(self, file: SourceFile, place: int) -> MaybeValue:
        """An instance of the class whose method is defined outside of it."""
        base = file.items[place].bases[0]
        owner = self._name_in_includes(file, base.rpartition("::")[2])
        if owner is None or owner[1].items[owner[2]].kind not in TYPES:
            return None
        return True, owner[1], owner[2]

    def namesakes(self, file: SourceFile, name: str) -> list[tuple[int, int]]:
        """A function is resolved to its definition, a method to its declaration in the class."""
        known = self._namesakes.get(name)
        if known is None:
            known = self._namesakes[name] = self._all_namesakes(name)
        return [
            (number, where) for number, where, is_own in known if where == file.id or not is_own
        ]

    def is_common(self, file: SourceFile, name: str) -> bool:
        # C has no methods: `run` is a function pointer or a function declared by hand.
        return name in (self.builtins if file.facts.language == "c" else self.common)

    def _all_namesakes(self, name: str) -> list[tuple[int, int, bool]]:
        """Each with whether it is private to its file."""
        by_owner: dict[str, list[tuple[int, int, bool]]] = {}
        best: set[int] = set()
        for namesake in self.world.named(name):
            file = self.world.file(namesake.file_id) if namesake.kind in self.called_kinds else None
            if file is None or file.facts.language not in self.languages:
                continue
            slot = namesake.id & ((1 << SLOTS) - 1)
            item = file.items[file.slots.index(slot) if file.slots else slot]
            is_method = item.kind == "method"
            owner = ""
            if is_method:
                owner = item.bases[0] if item.bases else file.items[item.parent].name
            is_own = item.visibility == "private" and not is_method
            by_owner.setdefault(owner.rpartition("::")[2], []).append(
                (namesake.id, file.id, is_own)
            )
            if file.path.endswith(_HEADERS) == is_method:
                best.add(namesake.id)
        return [
            entry
            for same in by_owner.values()
            for entry in [one for one in same if one[0] in best] or same
        ]


def _is_type(value: Value) -> bool:
    return value[1].items[value[2]].kind in TYPES and not _is_hidden(value)


def _is_hidden(value: Value) -> bool:
    return value[1].items[value[2]].visibility == "private"


def _root(path: str, name: str) -> str:
    """The folder in which an include is searched."""
    return path[: len(path) - len(name)].rstrip("/")


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]


def _common(one: str, other: str) -> int:
    """How many parent folders two paths share."""
    number = 0
    for first, second in zip(one.split("/")[:-1], other.split("/")[:-1], strict=False):
        if first != second:
            break
        number += 1
    return number


RULES = CRules
