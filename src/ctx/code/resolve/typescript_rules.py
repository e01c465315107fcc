"""Where the imports of TypeScript and JavaScript lead."""

import posixpath
from collections.abc import Iterator

from ctx.code.resolve.evaluator import Evaluator
from ctx.code.resolve.rules import OUTSIDE, MaybeValue, ResolutionRules, class_around
from ctx.code.resolve.typescript_settings import Configurations, NodePackage, packages
from ctx.code.resolve.world import SourceFile, World
from ctx.code.source_model import SourceImport

_ENDINGS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs")
_SOURCE_ENDINGS = {
    ".js": (".ts", ".tsx", ".d.ts", ".jsx"),
    ".jsx": (".tsx", ".d.ts"),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
    ".ts": (".d.ts",),
}
"""The source extensions for a file that is imported by its build output."""

_DEFAULT = "default"
_LATER = -10
_GLOBALS = frozenset(
    """
AbortController AbortSignal AggregateError Array ArrayBuffer ArrayLike AsyncGenerator
AsyncIterable AsyncIterator Atomics Awaited BigInt BigInt64Array BigUint64Array Blob Boolean
BroadcastChannel Buffer CSS CSSStyleDeclaration Capitalize CanvasRenderingContext2D
ConstructorParameters Crypto CustomElementRegistry CustomEvent DOMException DOMParser DOMRect
DataTransfer DataView Date Document DocumentFragment DragEvent Element Error EvalError Event
EventListener EventSource EventTarget Exclude Extract File FileList FileReader
FinalizationRegistry Float32Array Float64Array FocusEvent FormData Function Generator
GeneratorFunction HTMLAnchorElement HTMLButtonElement HTMLCanvasElement HTMLDivElement
HTMLElement HTMLFormElement HTMLImageElement HTMLInputElement HTMLSelectElement
HTMLTextAreaElement Headers History Image ImageData Infinity InstanceType Int16Array Int32Array
Int8Array IntersectionObserver Intl Iterable IterableIterator Iterator JSON JSX KeyboardEvent
Location Lowercase Map Math MediaQueryList MessageChannel MessageEvent MessagePort MouseEvent
MutationObserver NaN Navigator Node NodeJS NodeList NonNullable Notification Number Object Omit
OmitThisParameter Parameters Partial Path2D Performance Pick PointerEvent Promise PromiseLike
PropertyDescriptor PropertyKey Proxy RangeError ReadableStream Readonly ReadonlyArray
ReadonlyMap ReadonlySet Record ReferenceError Reflect RegExp RegExpExecArray RegExpMatchArray
Request Required ResizeObserver Response ReturnType SVGElement Selection Set ShadowRoot
SharedArrayBuffer Storage String SubtleCrypto Symbol SyntaxError TemplateStringsArray Text
TextDecoder TextEncoder ThisParameterType ThisType TouchEvent TransformStream TypeError URIError
URL URLSearchParams Uint16Array Uint32Array Uint8Array Uint8ClampedArray Uncapitalize Uppercase
WeakMap WeakRef WeakSet WebAssembly WebSocket WheelEvent Window Worker WritableStream
XMLHttpRequest
alert any arguments atob bigint boolean btoa cancelAnimationFrame clearImmediate clearInterval
clearTimeout confirm console crypto customElements decodeURI decodeURIComponent document
encodeURI encodeURIComponent escape eval fetch getComputedStyle global globalThis history
indexedDB isFinite isNaN localStorage location matchMedia navigator never null number object
parseFloat parseInt performance process prompt queueMicrotask requestAnimationFrame
requestIdleCallback self sessionStorage setImmediate setInterval setTimeout string
structuredClone symbol undefined unescape unknown void window
after afterAll afterEach assert before beforeAll beforeEach cy describe expect it jest suite
test vi
""".split()
)
"""Available without an import. A file's own definitions take precedence."""
_BUILT_IN_MEMBERS = frozenset(
    """
abort abs add addAll addEventListener addListener after all allSettled any append appendChild
apply arrayBuffer assert assign at attachShadow before bind blob blur call cancel catch ceil
charAt charCodeAt clear clearRect click clone cloneNode close closest codePointAt compare
compareDocumentPosition concat connect constructor contains copy count create createElement
createObjectURL debug decode defineProperties defineProperty delete destroy disconnect
dispatchEvent done drawImage emit encode end endsWith entries equals error every exec
execCommand expect fill filter finally find findIndex findLast findLastIndex flat flatMap floor
flush focus forEach formData format freeze from fromCharCode fromEntries get getAll getAttribute
getBoundingClientRect getContext getDate getDay getElementById getElementsByClassName
getElementsByTagName getFullYear getHours getItem getMinutes getMonth getOwnPropertyDescriptor
getOwnPropertyNames getPrototypeOf getReader getRootNode getSeconds getTime getTimezoneOffset
group groupEnd has hasAttribute hasOwn hasOwnProperty head includes indexOf info
insertAdjacentElement insertAdjacentHTML insertBefore isArray isFinite isInteger isNaN
isSafeInteger item join json key keys lastIndexOf length listen listeners localeCompare log map
match matchAll matches max measure min mock mockClear mockImplementation mockReturnValue name
next normalize now off observe on once open padEnd padStart parse pause pipe play pop
postMessage pow preventDefault prepend push put querySelector querySelectorAll race random read
readFile reduce reduceRight reject release reload remove removeAttribute removeChild
removeEventListener removeItem removeListener render repeat replace replaceAll replaceChild
replaceState request requestFullscreen require reset resolve restore resume return reverse round
save scroll scrollBy scrollIntoView scrollTo search seal select send set setAttribute setDate
setHours setItem setMinutes setPrototypeOf setState setTime shift slice some sort splice split
sqrt start startsWith stop stopImmediatePropagation stopPropagation stringify submit subscribe
substr substring test text then throw time timeEnd toBe toBlob toDataURL toEqual toFixed
toISOString toJSON toLocaleString toLowerCase toPrecision toString toUpperCase toggle trace trim
trimEnd trimStart trunc unobserve unshift unsubscribe update use valueOf values warn with write
writeFile
""".split()
)
"""Members of built-in, browser and test objects."""


class TypeScriptRules(ResolutionRules):
    languages = ("typescript", "tsx", "javascript")
    receivers = frozenset({"this", "super", "exports"})
    builtins = _GLOBALS
    common = _BUILT_IN_MEMBERS

    def __init__(self, world: World, evaluator: Evaluator) -> None:
        super().__init__(world, evaluator)
        self._configurations = Configurations(world)
        self._packages: dict[str, list[NodePackage]] | None = None
        self._modules: dict[tuple[str, str], MaybeValue] = {}

    def module(self, file: SourceFile, module: str) -> MaybeValue:
        key = (file.path.rpartition("/")[0], module)
        if key not in self._modules:
            self._modules[key] = self._module(*key)
        return self._modules[key]

    def _module(self, folder: str, module: str) -> MaybeValue:
        # A query after the name is for the bundler.
        module = module.partition("?")[0]
        if module.startswith("."):
            return self._file_at(posixpath.normpath(posixpath.join(folder, module))) or OUTSIDE
        for paths in self._configurations.around(folder):
            for candidate in paths.candidates(module):
                value = self._file_at(candidate)
                if value is not None:
                    return value
        return self._in_package(folder, module) or self._declared_module(module) or OUTSIDE

    def _file_at(self, path: str) -> MaybeValue:
        """The file at a path, with or without its extension, or the index of a folder."""
        if path.startswith("../"):
            return None
        if path in (".", ""):
            return self._first_existing("index", _ENDINGS)
        stem, ending = posixpath.splitext(path)
        return (
            self._first_existing(path, ("",))
            or self._first_existing(stem, _SOURCE_ENDINGS.get(ending, ()))
            or self._first_existing(path, _ENDINGS)
            or self._first_existing(f"{path}/index", _ENDINGS)
        )

    def _first_existing(self, path: str, endings: tuple[str, ...]) -> MaybeValue:
        for ending in endings:
            target = self.world.at(path + ending)
            if target is not None and target.facts.language in self.languages:
                return False, target, 0
        return None

    def _in_package(self, folder: str, module: str) -> MaybeValue:
        if self._packages is None:
            self._packages = packages(self.world)
        parts = module.split("/")
        length = 2 if module.startswith("@") else 1
        name, rest = "/".join(parts[:length]), "/".join(parts[length:])
        way = f"./{rest}" if rest else "."
        # Of two packages with one name, the nearest one.
        meant = sorted(
            self._packages.get(name, ()),
            key=lambda package: -len(posixpath.commonprefix((f"{package.folder}/", f"{folder}/"))),
        )
        for package in meant:
            for path in package.entries(way):
                value = self._file_at(path)
                if value is not None:
                    return value
        return None

    def _declared_module(self, module: str) -> MaybeValue:
        """An external module that a file of the project declares."""
        for namesake in self.world.named(module):
            file = self.world.file(namesake.file_id) if namesake.kind == "module" else None
            place = file.member(0, module) if file else None
            if file is not None and place is not None:
                return False, file, place
        return None

    def target(self, file: SourceFile, import_: SourceImport) -> MaybeValue:
        if not import_.module:
            # What a file exports of its own, or re-exports.
            name = import_.item
            if file.member(0, name) is None:
                for other in file.facts.imports:
                    if other.bound == name and other.module and not other.scope:
                        return self.target(file, other)
            return self.evaluator.expression(file, 0, name)
        target_module = self.module(file, import_.module)
        if (
            target_module is None
            or target_module is OUTSIDE
            or import_.item == "*"
            or not (import_.item or import_.bound)
        ):
            return target_module
        member = self.evaluator.member
        if import_.item in ("", _DEFAULT):
            default = member(target_module, _DEFAULT)
            is_older = not import_.item or target_module[1].facts.language == "javascript"
            # A CommonJS module has no default export and is imported as a whole.
            return target_module if default is None and is_older else default
        taken = member(target_module, import_.item)
        if taken is None:
            # A member of the single value that a CommonJS module exports.
            default = member(target_module, _DEFAULT)
            if default is not None and default is not OUTSIDE:
                taken = member(default, import_.item)
        return taken

    def receiver(self, file: SourceFile, scope: int, name: str) -> MaybeValue:
        if name == "exports":
            return False, file, 0
        place = class_around(file, scope)
        if place:
            if name == "this":
                return True, file, place
            for base in self.bases(file, place):
                if base is not None:
                    return base
            return OUTSIDE
        items = file.items
        place = scope
        while place > 0:
            item = items[place]
            if item.kind in ("const", "static") and item.type == f"={item.name}":
                return True, file, place
            if item.kind == "method" and item.bases:
                return self.evaluator.expression(file, 0, item.bases[0])
            place = item.parent
        return None

    def containers(self, file: SourceFile, place: int) -> Iterator[tuple[SourceFile, int]]:
        """Members that an object gets later, as in `app.start = function () {…}`: an index that no
        item has stands for them."""
        item = file.items[place]
        if item.parent == 0 and item.type == f"={item.name}":
            later = _LATER - place
            if later not in file.names:
                file.names[later] = {
                    method.name: number
                    for number, method in enumerate(file.items)
                    if method.kind == "method"
                    and method.parent == 0
                    and method.bases == (item.name,)
                }
            yield file, later

    def bases(self, file: SourceFile, place: int) -> Iterator[MaybeValue]:
        item = file.items[place]
        for base in item.bases:
            value = self.evaluator.expression(file, item.parent, base)
            if value is not None and value is not OUTSIDE:
                meant = value[1].items[value[2]]
                if meant.kind == "type_alias" and meant.type not in ("", f"={meant.name}"):
                    value = self.evaluator.typed(value[1], meant.parent, meant.type)
            yield value


RULES = TypeScriptRules
