"""Sessions over small repositories in Python."""

from tests.e2e.claude_code.replay.scenario import (
    Expected,
    Scenario,
    Turn,
    bash,
    edit,
    read,
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


SCENARIOS = (REFRESH_ONCE, RENAMES)
