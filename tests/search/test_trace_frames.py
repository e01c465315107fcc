"""Frames in pasted stack traces."""

import string
import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.search.trace_frames import CodeFrame, is_of_others, is_plumbing, read

PYTHON = """\
Traceback (most recent call last):
  File "/srv/shop/cli.py", line 12, in main
    run(order)
  File "/srv/shop/orders.py", line 88, in Orders.place
    total = self.price(order)
            ^^^^^^^^^^^^^^^^^
  File "/srv/shop/prices.py", line 7, in price
    return TABLE[order.kind]
KeyError: 'gift'
"""
INNERMOST_FIRST = [
    CodeFrame("/srv/shop/prices.py", 7, "price"),
    CodeFrame("/srv/shop/orders.py", 88, "Orders.place"),
    CodeFrame("/srv/shop/cli.py", 12, "main"),
]


def frames_of(text: str) -> list[CodeFrame]:
    return list(read(text.splitlines()).frames)


@pytest.mark.parametrize(
    "prefix",
    [
        *("", "> ", "> > ", "INTERNALERROR> ", "E   ", "  │ ", "ERROR - ", "[stderr] "),
        *("2024-05-01T10:00:00.123Z ", "2024-05-01 10:00:00,123 ERROR: ", "[pod/shop-7d9f] "),
        *("[2024-05-01 10:00:00] [worker-3] ", "10:00:00.123 [pod/shop-7d9f/web] ", "web_1  | "),
        *("shop-web-1  | 2024-05-01T10:00:00Z ", "May  1 10:00:00 host-1 shop[3121]: "),
        "Wed, May 1 2024 10:00:00 am | ",
    ],
)
def test_the_prefixes_of_logs_and_quotes_are_removed(prefix: str) -> None:
    assert frames_of("".join(prefix + line for line in PYTHON.splitlines(True))) == INNERMOST_FIRST


def test_a_trace_that_lost_its_indentation_is_read() -> None:
    assert frames_of("\n".join(map(str.strip, PYTHON.splitlines()))) == INNERMOST_FIRST


@pytest.mark.parametrize(
    "prefix",
    [
        "Wed, May 1 2024 9:38:45 am | ",
        "15:08:10 364.661713 T:1587278832  NOTICE: [plugin.shop] ",
        "E0623 | ",
        "  │ ",
    ],
)
def test_prefixes_are_removed_where_the_line_above_counts(prefix: str) -> None:
    lines = ["acme/shop/prices.(*Table).Price(0xd)", "/go/src/acme/shop/prices.go:7 +0x2c8"]
    assert frames_of("\n".join(prefix + line for line in lines)) == [
        CodeFrame("/go/src/acme/shop/prices.go", 7, "prices.Table.Price")
    ]


def test_underscores_that_became_bold_text_are_restored() -> None:
    assert frames_of('  File "shop/**init**.py", line 3, in **init**') == [
        CodeFrame("shop/__init__.py", 3, "__init__")
    ]


def test_the_first_of_two_python_traces_is_the_cause() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in a\n    b()\n'
        '  File "b.py", line 2, in b\n    c()\nKeyError: 1\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "c.py", line 3, in c\n    d()\n'
        '  File "<string>", line 1, in <module>\n  File "d.py", line 4, in d\n    e()\nOSError\n'
    )
    assert [frame.path for frame in frames_of(text)] == ["b.py", "a.py", "d.py", "c.py"]


IPYTHON_7 = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
<ipython-input-3-1f2a> in <module>
      1 from shop import Orders
----> 2 Orders().place(gift)

~/envs/x/lib/python3.9/site-packages/shop/orders.py in place(self, order)
     86         # every kind has a price
     87
---> 88         total = self.price(order)
     89         return total

~\\shop\\prices.py in price(order)
      5
----> 7     return TABLE[order.kind]

KeyError: 'gift'
"""
IPYTHON_8 = """\
Cell In[3], line 2
      1 from shop import Orders
----> 2 Orders().place(gift)

File ~/envs/x/shop/orders.py:88, in Orders.place(self, order)
     87
---> 88         total = self.price(order)
     89         return total

File C:\\work\\shop\\prices.py:7, in price(order)
      5
----> 7     return TABLE[order.kind]

KeyError: 'gift'
"""
PYTEST = """\
____________________________ test_gifts ____________________________
tests/test_orders.py:14: in test_gifts
    Orders().place(gift)
shop/orders.py:88: in place
    total = self.price(order)
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

order = Order(kind='gift')

    def price(order):
>       return TABLE[order.kind]
E       KeyError: 'gift'

shop/prices.py:7: KeyError
____________________________ test_other ____________________________
tests/test_other.py:3: in test_other
"""
RICH = """\
│ /srv/shop/orders.py:88 in place                     │
│   88 │   total = self.price(order)                  │
│ /srv/shop/prices.py:7 in price                      │
"""
RUST = """\
thread 'main' panicked at 'no price, or: none', src\\prices.rs:7:9
stack backtrace:
   0: rust_begin_unwind
             at /rustc/90c541/library/std/src/panicking.rs:578:5
   1:     0x55d7 - shop::orders::Orders::place::{{closure}}::h0123456789abcdef
                               at ./src/orders.rs:88
"""
GO = """\
panic: runtime error: index out of range [3] with length 3

goroutine 1 [running]:
shop/internal/prices.(*Table).Price(0xc0001, {0x1, 0x2})
        /home/me/shop/internal/prices/prices.go:7 +0x1d
main.main.func1()
\t/home/me/shop/main.go:12 +0x25
created by shop/pool.Start in goroutine 1
\t/home/me/shop/pool/pool.go:30 +0x9c
"""
JAVASCRIPT = """\
TypeError: Cannot read properties of undefined (reading 'kind')
    at Table.price [as lookup] (webpack-internal:///./src/prices.ts:7:13)
    at async Orders.place (webpack://shop/./src/orders.ts?1a2b:88:5)
    at new Shop (C:\\Users\\Ann Lee\\shop\\lib\\shop.js:4:1)
    at Object.<anonymous> (/srv/shop/index.js:1:2)
    at http://localhost:3000/src/app.js?t=17:2:9
    at node:internal/process/task_queues:95:5
"""
FIREFOX = """\
price@http://localhost:3000/src/prices.js:7:13
@file:///srv/shop/index.js:1:2
"""
JAVA = """\
Exception in thread "main" com.shop.OrderException: cannot place
\tat com.shop.Orders.place(Orders.java:88) ~[shop-1.0.jar:na]
\tat java.base/java.lang.Thread.run(Thread.java:833)
Caused by: com.shop.PriceException: no price
\tat com.shop.Orders.lambda$place$0(Orders.java:80)
\t... 2 more
Caused by: java.lang.NullPointerException: null
\tat com.shop.prices.Table$Row.price(Table.kt:7)
\tat com.shop.prices.Table.get(Table.kt:3)
\t... 4 more
"""
CSHARP = """\
Unhandled exception. System.NullReferenceException: Object reference not set
   at Shop.Prices.Price(Order order, Int32 n) in C:\\src\\Shop\\Prices.cs:line 7
   at Shop.Orders.<PlaceAsync>d__3.MoveNext() in /src/Shop/Orders.cs:line 88
   at System.Threading.Tasks.Task.Run()
"""
RUBY = """\
lib/shop/prices.rb:7:in `price': no price (KeyError)
\tfrom lib/shop/orders.rb:88:in `block (2 levels) in place'
\tfrom bin/shop:3:in '<main>'
"""
RUBY_LAST = """\
Traceback (most recent call last):
\t1: from lib/shop/orders.rb:88:in `place'
lib/shop/prices.rb:7:in `price': no price (KeyError)
"""
PHP = """\
PHP Fatal error:  Uncaught Error: Call to undefined method Row::kind() in /srv/src/Prices.php:7
Stack trace:
#0 /srv/src/Orders.php(88): Shop\\Prices->price(Object(Shop\\Order))
#1 /srv/index.php(3): Shop\\Orders::place()
#2 {main}
"""
GDB = """\
#0  0x00007f in read_all (n=1) at src/read.c:12
    #1 0x4f2 in main /src/main.c:9:3
"""


EXPECTED = {
    IPYTHON_7: """
~\\shop\\prices.py:7 price
~/envs/x/lib/python3.9/site-packages/shop/orders.py:88 place
""",
    IPYTHON_8: """
C:\\work\\shop\\prices.py:7 price
~/envs/x/shop/orders.py:88 Orders.place
""",
    PYTEST: """
shop/prices.py:7
shop/orders.py:88 place
tests/test_orders.py:14 test_gifts
tests/test_other.py:3 test_other
""",
    RICH: """
/srv/shop/prices.py:7 price
/srv/shop/orders.py:88 place
""",
    RUST: """
src\\prices.rs:7
/rustc/90c541/library/std/src/panicking.rs:578 rust_begin_unwind
./src/orders.rs:88 shop::orders::Orders::place
""",
    GO: """
/home/me/shop/internal/prices/prices.go:7 prices.Table.Price
/home/me/shop/main.go:12 main.main
/home/me/shop/pool/pool.go:30 pool.Start
""",
    JAVASCRIPT: """
src/prices.ts:7 Table.price
src/orders.ts:88 Orders.place
C:\\Users\\Ann Lee\\shop\\lib\\shop.js:4 Shop
/srv/shop/index.js:1 Object
/src/app.js:2
node:internal/process/task_queues:95
""",
    FIREFOX: """
/src/prices.js:7 price
/srv/shop/index.js:1
""",
    JAVA: """
com/shop/prices/Table.kt:7 com.shop.prices.Table.Row.price
com/shop/prices/Table.kt:3 com.shop.prices.Table.get
com/shop/Orders.java:80 com.shop.Orders.place
com/shop/Orders.java:88 com.shop.Orders.place
java/lang/Thread.java:833 java.lang.Thread.run
""",
    "NPE at com.shop.Prices.price(Prices.java:7) at com.shop.Orders.place(Orders.java:88)": """
com/shop/Prices.java:7 com.shop.Prices.price
com/shop/Orders.java:88 com.shop.Orders.place
""",
    CSHARP: """
C:\\src\\Shop\\Prices.cs:7 Shop.Prices.Price
/src/Shop/Orders.cs:88 Shop.Orders.PlaceAsync
""",
    RUBY: """
lib/shop/prices.rb:7 price
lib/shop/orders.rb:88 place
bin/shop:3
""",
    RUBY_LAST: """
lib/shop/prices.rb:7 price
lib/shop/orders.rb:88 place
""",
    PHP: """
/srv/src/Prices.php:7
/srv/src/Orders.php:88 Shop.Prices.price
/srv/index.php:3 Shop.Orders::place
""",
    GDB: """
src/read.c:12 read_all
/src/main.c:9 main
""",
}


@pytest.mark.parametrize("text", EXPECTED, ids=lambda text: text.split("\n")[0][:20])
def test_the_innermost_frame_is_the_first(text: str) -> None:
    found = (f"{frame.path}:{frame.line} {frame.name}".rstrip() for frame in frames_of(text))
    assert list(found) == EXPECTED[text].strip().split("\n")


def test_lines_of_prose_and_code_are_not_frames() -> None:
    text = (
        "It fails at night (see below) in src/net.py, line 3.\n"
        "Meet at 10:30:00 or in foo.py:3: it is not clear\n"
        "net.py:45: error: Incompatible types\n"
        "> quoted words\nE   KeyError\n[1] a footnote\n  12 eggs in a box\n"
    )
    assert read(text.splitlines()) == ((), frozenset())


def test_the_lines_of_a_trace_are_known() -> None:
    assert read(PYTHON.splitlines()).lines == {1, 2, 3, 4, 6, 7}
    # The message of a panic is not part of the frame.
    assert read(RUST.splitlines()).lines == {2, 3, 4, 5}


def test_frames_of_libraries_and_of_the_runtime_are_known() -> None:
    assert is_of_others(CodeFrame("/x/site-packages/b.py", 2, "b"))
    assert is_of_others(CodeFrame("java/lang/Thread.java", 833, "java.lang.Thread.run"))
    assert is_of_others(CodeFrame("node:internal/timers", 2, ""))
    assert not is_of_others(CodeFrame("/app/a.py", 1, "a"))


def test_entry_points_and_wrappers_are_plumbing() -> None:
    for path, name, expected in (
        ("shop/orders.py", "Orders.place", False),
        ("shop/orders.py", "Orders.__call__", True),
        ("shop/retry.py", "wrapper", True),
        ("src/main.rs", "shop::start_all", True),
        ("C:\\shop\\cli.py", "", True),
        ("shop/clients.py", "run_query", False),
    ):
        assert is_plumbing(CodeFrame(path, 1, name)) == expected


PIECES = [
    *('File "', '", line 1, in ', "File ", "~/a.py", ":1", ": in ", ", in ", "at ", "(", ")"),
    *(":1:1", ".cs:line 1", " in ", "@", "://", "#0 ", "0x1 in ", ".php(", ".php:", "->", " 12 "),
    *("panicked at ", ", ", "  1: ", "\tat ", "x.go:1", "Caused by: ", "[", "]", "> ", "E   "),
    *("10:00:00 ", "2024-05-01T10:00:00", "May 1 10:00:00 ", "web |", "a.b.c", "\n", "`", "'"),
    *("\\", "INFO: ", ": from ", ":in ", "Cell In[1]", "é", "日", "|"),
]


def test_hostile_texts_take_linear_time() -> None:
    """With quadratic time in a line, or in the number of lines, this takes minutes."""
    random = Random(1)
    begun = time.process_time()
    for piece in PIECES:
        read([(piece * 4_000)[:4_000].replace("\n", " ")] * 10)
    for _ in range(40):
        chosen = random.choices(PIECES, k=3)
        line = "".join(random.choices(chosen, k=1_500))[:4_000]
        read([line.replace("\n", " ")] * 5)
        read(line.split("\n"))
    assert time.process_time() - begun < 10


@given(st.lists(st.sampled_from([*PIECES, *string.ascii_letters]), max_size=60))
def test_any_text_can_be_read(pieces: list[str]) -> None:
    lines = "".join(pieces).splitlines()
    trace = read(lines)
    assert all(number < len(lines) for number in trace.lines)
    assert all(frame.path and frame.line >= 0 for frame in trace.frames)
