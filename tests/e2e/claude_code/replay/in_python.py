"""Sessions over small repositories in Python."""

from tests.e2e.claude_code.replay.scenario import (
    Expected,
    Scenario,
    Turn,
    bash,
    edit,
    read,
    write,
)

CLIENT = '''"""Talks to the bank."""


class Session:
    def __init__(self, transport):
        self.transport = transport
        self.token = None

    def refresh(self):
        self.token = self.transport.new_token()
        return self.token

    def get(self, path):
        answer = self.transport.get(path, self.token)
        if answer == 401:
            self.refresh()
            self.refresh()
            answer = self.transport.get(path, self.token)
        return answer
'''
CLIENT_TEST = """import unittest

from bank.client import Session


class Transport:
    def __init__(self):
        self.tokens = 0

    def new_token(self):
        self.tokens += 1
        return f"token-{self.tokens}"

    def get(self, path, token):
        return 200 if token else 401


class SessionTest(unittest.TestCase):
    def test_refreshes_once(self):
        transport = Transport()
        self.assertEqual(Session(transport).get("/accounts"), 200)
        self.assertEqual(transport.tokens, 1)
"""
UNITTEST = "python3 -m unittest discover -s tests -t ."

REFRESH_ONCE = Scenario(
    "refresh_once",
    {
        "bank/__init__.py": "",
        "bank/client.py": CLIENT,
        "tests/__init__.py": "",
        "tests/test_client.py": CLIENT_TEST,
    },
    (
        Turn(
            "The bank complains that we ask for two tokens after every 401. Please fix it.",
            (
                bash(UNITTEST, "I'll run the tests first."),
                read("bank/client.py", "tests/test_client.py"),
                edit(
                    "bank/client.py",
                    "            self.refresh()\n            self.refresh()\n",
                    "            self.refresh()\n",
                    "The root cause is that Session.get calls refresh twice in a row.",
                ),
                bash(UNITTEST),
                (
                    "Fixed: `Session.get` in bank/client.py refreshed the token twice after a"
                    " 401; it does so once now, and test_refreshes_once passes."
                ),
            ),
        ),
        Turn(
            "Good. From now on, tokens are only refreshed in Session.get, never by callers,"
            " because the bank locks accounts after ten tokens a minute.",
            ("Understood: callers never refresh tokens themselves.",),
        ),
    ),
    (
        Expected("bugfix", ("test_refreshes_once", "Session.get"), ("bank/client.py",)),
        Expected("decision", ("tokens", "refreshed", "Session.get", "because")),
    ),
    4,
    ("I'll run the tests first", "Ran 1 test", "Traceback", "Understood", "-----"),
    {
        "request": ("bank", "tokens", "401"),
        "completed": ("Session.get",),
        "files_edited": ("bank/client.py",),
        "files_read": ("tests/test_client.py",),
    },
)

FETCH = '''"""Fetches pages."""


def fetch(get, url):
    """One page, or what went wrong."""
    status, body = get(url)
    if status != 200:
        raise RuntimeError(f"{url}: {status}")
    return body
'''
RETRY_TEST = """import unittest

from shop.fetch import fetch_with_retry


class RetryTest(unittest.TestCase):
    def test_waits_as_long_as_it_is_told(self):
        answers = [(429, "3"), (200, "tea")]
        waited = []
        found = fetch_with_retry(lambda url: answers.pop(0), "/tea", waited.append)
        self.assertEqual((found, waited), ("tea", [3]))
"""
RETRY = '''

def fetch_with_retry(get, url, wait, tries=5):
    """One page; where the shop is busy, after the pause that it asks for."""
    for _ in range(tries):
        status, body = get(url)
        if status != 429:
            break
        wait(int(body))
    if status != 200:
        raise RuntimeError(f"{url}: {status}")
    return body
'''

RETRY_FEATURE = Scenario(
    "retry_feature",
    {"shop/__init__.py": "", "shop/fetch.py": FETCH, "tests/__init__.py": ""},
    (
        Turn(
            "Add retries to the fetcher for when the shop is busy.",
            (
                read("shop/fetch.py", says="Let me look at the fetcher."),
                bash("grep -rn 429 . || true"),
                write(
                    "tests/test_fetch.py",
                    RETRY_TEST,
                    "It turns out that the shop answers 429 with the number of seconds to wait in"
                    " the body, so the pause must come from there and not from a constant.",
                ),
                bash(f"{UNITTEST} 2>&1 | tail -5; true"),
                edit("shop/fetch.py", "    return body\n", f"    return body\n{RETRY}"),
                bash(UNITTEST),
                (
                    "I added `fetch_with_retry` to shop/fetch.py: it waits as long as the shop"
                    " asks for and gives up after five tries. tests/test_fetch.py covers"
                    " it.\n\nNext step: use it in the importer."
                ),
            ),
        ),
    ),
    (
        Expected("feature", ("fetch_with_retry",), ("shop/fetch.py",)),
        Expected("discovery", ("429", "seconds")),
    ),
    4,
    ("Let me look at the fetcher", "Ran 1 test", "ImportError: cannot import name"),
    {
        "request": ("retries", "fetcher"),
        "learned": ("429",),
        "completed": ("fetch_with_retry",),
        "next_steps": ("importer",),
        "files_edited": ("shop/fetch.py", "tests/test_fetch.py"),
    },
)

PRICES = '''"""Prices."""


def calc(items):
    return sum(price for _, price in items)


def calc_tax(items, rate):
    return calc(items) * rate


def show(items):
    return f"{calc(items):.2f}"
'''

RENAMES = Scenario(
    "renames",
    {
        "shop/__init__.py": "",
        "shop/prices.py": PRICES,
        "shop/order.py": "from shop.prices import calc\n\n\ndef owed(items):\n"
        "    return calc(items)\n",
        "tests/__init__.py": "",
        "tests/test_order.py": "import unittest\n\nfrom shop.order import owed\n\n\n"
        "class OrderTest(unittest.TestCase):\n    def test_owed(self):\n"
        '        self.assertEqual(owed([("tea", 3), ("cup", 4)]), 7)\n',
    },
    (
        Turn(
            "`calc` is a bad name. Rename it to `total` everywhere, without changing what it does.",
            (
                read("shop/prices.py", "shop/order.py"),
                edit("shop/prices.py", "def calc(items):", "def total(items):"),
                edit("shop/prices.py", "return calc(items) * rate", "return total(items) * rate"),
                edit("shop/prices.py", "{calc(items):.2f}", "{total(items):.2f}"),
                edit("shop/order.py", "import calc", "import total"),
                edit("shop/order.py", "return calc(items)", "return total(items)"),
                bash(UNITTEST),
                (
                    "Renamed `calc` to `total` in shop/prices.py and shop/order.py; the tests still"
                    " pass."
                ),
            ),
        ),
    ),
    (Expected("refactor", ("calc", "total"), ("shop/prices.py",)),),
    3,
    ("Ran 1 test",),
    {
        "request": ("calc", "total"),
        "completed": ("total",),
        "files_edited": ("shop/prices.py", "shop/order.py"),
    },
)

ONLY_A_QUESTION = Scenario(
    "only_a_question",
    {"shop/__init__.py": "", "shop/prices.py": PRICES},
    (
        Turn(
            "What does show() print?",
            (
                read("shop/prices.py", says="I'll read the file."),
                "It prints the total with two decimals.",
            ),
        ),
        Turn("Thanks!", ("You're welcome!",)),
    ),
    (),
    0,
    ("I'll read the file", "welcome", "Thanks"),
    {"request": ("show()",), "files_read": ("shop/prices.py",)},
)

STOCK = '''"""Stock of a shop."""


class Stock:
    def __init__(self):
        self.items = {}

    def add(self, name, count):
        self.items[name] = count

    def take(self, name, count):
        self.items[name] -= count
        return count

    def report(self):
        return ", ".join(f"{name}: {count}" for name, count in self.items.items())
'''
STOCK_TEST = """import unittest

from stock.stock import Stock


class StockTest(unittest.TestCase):
    def setUp(self):
        self.stock = Stock()
        self.stock.add("tea", 2)

    def test_add_twice(self):
        self.stock.add("tea", 3)
        self.assertEqual(self.stock.items["tea"], 5)

    def test_take_too_many(self):
        with self.assertRaises(ValueError):
            self.stock.take("tea", 9)
        self.assertEqual(self.stock.items["tea"], 2)

    def test_report_is_sorted(self):
        self.stock.add("cup", 1)
        self.assertEqual(self.stock.report(), "cup: 1, tea: 2")
"""
ONE = "python3 -m unittest tests.test_stock.StockTest.{}"

LONG = Scenario(
    "long",
    {
        "stock/__init__.py": "",
        "stock/stock.py": STOCK,
        "tests/__init__.py": "",
        "tests/test_stock.py": STOCK_TEST,
        "README.md": "# Stock\n\nCounts things.\n",
    },
    (
        Turn(
            "The stock module is broken in several ways. Make all tests pass, one after the other.",
            (
                bash("ls -la", "Let me get an overview."),
                bash("git status --short"),
                bash("git log --oneline | head -5"),
                bash("cat README.md"),
                read("stock/stock.py", "tests/test_stock.py"),
                bash(UNITTEST),
                bash("grep -n 'def ' stock/stock.py"),
                # The first one, at the second attempt.
                bash(ONE.format("test_add_twice")),
                edit(
                    "stock/stock.py",
                    "        self.items[name] = count\n",
                    "        self.items[name] = self.items[name] + count\n",
                ),
                bash(ONE.format("test_add_twice")),
                edit(
                    "stock/stock.py",
                    "        self.items[name] = self.items[name] + count\n",
                    "        self.items[name] = self.items.get(name, 0) + count\n",
                    "A name that is not there yet has to count as zero.",
                ),
                bash(ONE.format("test_add_twice")),
                *(bash(f"sed -n '{n},{n + 4}p' stock/stock.py") for n in range(1, 16, 3)),
                bash(ONE.format("test_take_too_many")),
                edit(
                    "stock/stock.py",
                    "        self.items[name] -= count\n",
                    "        if count > self.items.get(name, 0):\n"
                    '            raise ValueError(f"there are not {count} of {name}")\n'
                    "        self.items[name] -= count\n",
                ),
                bash(ONE.format("test_take_too_many")),
                bash("git diff --stat"),
                bash("ls tests"),
                bash(ONE.format("test_report_is_sorted")),
                read("stock/stock.py"),
                edit("stock/stock.py", "self.items.items())", "sorted(self.items.items()))"),
                bash(ONE.format("test_report_is_sorted")),
                bash(UNITTEST),
                (
                    "All three tests pass now: `Stock.add` adds up, `Stock.take` refuses to take"
                    " more than there is, and `Stock.report` is sorted by name."
                ),
            ),
        ),
        Turn(
            "<private>My password for the staging box is Hunter2-Hunter2.</private> Let's use"
            " integers for all counts, never floats, because a third of a cup cannot be sold.",
            (
                bash("grep -rn float . || true"),
                edit(
                    "stock/stock.py",
                    "    def add(self, name, count):\n",
                    "    def add(self, name, count):\n"
                    "        if not isinstance(count, int):\n"
                    '            raise TypeError("counts are integers")\n',
                ),
                bash(UNITTEST),
                *(bash(f"git show HEAD:stock/stock.py | sed -n '{n}p'") for n in range(1, 27)),
                bash("wc -l stock/stock.py tests/test_stock.py"),
                bash(
                    "git add -A && git commit -qm 'Mend the stock' && git log --oneline | head -1"
                ),
                bash("git status --short"),
                (
                    "Counts are integers now; `Stock.add` raises a TypeError for anything else. I"
                    " committed everything."
                ),
            ),
        ),
    ),
    (
        Expected("bugfix", ("test_add_twice", "Stock.add"), ("stock/stock.py",)),
        Expected("bugfix", ("test_take_too_many", "Stock.take"), ("stock/stock.py",)),
        Expected("bugfix", ("test_report_is_sorted", "Stock.report"), ("stock/stock.py",)),
        Expected("decision", ("integers", "counts", "because")),
    ),
    7,
    ("Hunter2", "Let me get an overview", "Ran 3 tests", "total ", "drwx", "Traceback"),
    {
        "request": ("stock", "tests"),
        "completed": ("Stock.take", "Stock.report"),
        "files_edited": ("stock/stock.py",),
    },
)

SCENARIOS = (REFRESH_ONCE, RETRY_FEATURE, RENAMES, ONLY_A_QUESTION, LONG)
