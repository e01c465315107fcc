"""Names of JavaScript, TypeScript and their environments."""

GLOBALS = frozenset(
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

MEMBERS = frozenset(
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
