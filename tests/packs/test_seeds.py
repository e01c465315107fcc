"""Looking up what a task names: frames, commands, and names that are defined elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ctx.packs import seeds
from ctx.packs.seeds import NamedSeeds
from ctx.search import entities, question
from tests.packs.packs import Packing, packing

FILES = {
    "src/shop/__init__.py": "from shop._orders import place_all\n",
    "src/shop/_orders.py": (
        "class Orders:\n    def place(self, order):\n        return price(order)\n\n\n"
        "def place_all(orders):\n    pass\n"
    ),
    "src/shop/prices.py": "def price(order):\n    return TABLE[order]\n",
    "src/shop/retry.py": "def retry(f):\n    def wrapper():\n        return f()\n",
    "src/shop/cli.py": "def main():\n    pass\n\n\ndef export_all():\n    pass\n",
    "src/shop/commands/stock_take.py": "def run():\n    pass\n",
    "src/shop/stock.py": "def cmd_refill():\n    pass\n\n\ndef audit():\n    pass\n",
    "tests/test_prices.py": "def test_price():\n    pass\n\n\ndef export_all():\n    pass\n",
    "api/src/main/java/com/shop/Table.java": (
        "package com.shop;\nclass Table {\n  int get() {\n    return 1;\n  }\n}\n"
    ),
    "go/cmd/refund.go": "package main\n\nfunc NewRefundCmd() {}\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
    "go.mod": "module github.com/acme/stock-room/v2\n",
    "tools/till/package.json": '{"name": "till"}\n',
    "notes/plan.txt": "Nothing to parse.\n",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Packing]:
    with packing(Path(tmp_path_factory.mktemp("seeds")) / "shop", FILES) as packing_:
        yield packing_


def named(shop: Packing, task: str) -> NamedSeeds:
    assert shop.sources.code is not None
    return seeds.in_code(shop.sources.code, entities.find(task))


def names(seeds_named: NamedSeeds) -> list[str]:
    return [item.name.rpartition(".")[2] for item in seeds_named.in_order]


TRACE = """\
web_1 | Traceback (most recent call last):
web_1 |   File "/home/me/job.py", line 3, in <module>
web_1 |     main()
web_1 |   File "/venv/lib/python3.11/site-packages/shop/cli.py", line 2, in main
web_1 |     place()
web_1 |   File "/venv/lib/python3.11/site-packages/shop/retry.py", line 3, in wrapper
web_1 |     return f()
web_1 |   File "/venv/lib/python3.11/site-packages/shop/_orders.py", line 3, in place
web_1 |     return price(order)
web_1 |   File "/venv/lib/python3.11/site-packages/shop/prices.py", line 2, in price
web_1 |     return TABLE[order]
web_1 |   File "/venv/lib/python3.11/site-packages/other/tables.py", line 2, in audit
web_1 | KeyError: 'gift'
"""


def test_the_frames_of_this_project_count_innermost_first_and_wrappers_less(
    shop: Packing,
) -> None:
    seeds_named = named(shop, TRACE)
    assert names(seeds_named) == ["price", "place", "wrapper", "main"]
    sure = list(seeds_named.items.values())
    assert sure[0] == 1
    assert sure[1] > 2 * sure[2] == 2 * sure[3] > 0
    assert list(seeds_named.files) == ["src/shop/prices.py", "src/shop/_orders.py"]


def test_the_innermost_frame_counts_even_in_a_wrapper_or_no_function(shop: Packing) -> None:
    seeds_named = named(shop, 'File "/x/site-packages/shop/retry.py", line 3, in wrapper')
    assert list(seeds_named.files) == ["src/shop/retry.py"]
    trace = (
        '  File "src/shop/prices.py", line 3, in <module>\n    import shop\n'
        '  File "src/shop/__init__.py", line 1, in <module>\n    import _orders\nImportError\n'
    )
    assert list(named(shop, trace).files) == ["src/shop/__init__.py"]


def test_paths_from_other_machines_are_found(shop: Packing) -> None:
    table, prices = "api/src/main/java/com/shop/Table.java", "src/shop/prices.py"
    for task, files in {
        "at com.shop.Table.get(Table.java:4)": [table],
        "C:\\Users\\me\\git\\src\\shop\\prices.py:2: in price": [prices],
        f"see /builds/42/{table}:4": [table],
        'File "/home/me/shop/prices.py", line 2, in something': [],
        "see prices.py": [prices],
        "see plan.txt": ["notes/plan.txt"],
        "see shop/prices.py": [prices],
        "see ../other/shop/prices.py": [],
    }.items():
        assert list(named(shop, task).files) == files, task


def test_a_call_leads_to_the_definition(shop: Packing) -> None:
    for task, expected in {
        # A package re-exports it, or it is called on a variable.
        "shop.place_all fails": ["place_all"],
        "calling `x.cmd_refill()` twice": ["cmd_refill"],
        "calling `shop.orders.place` twice": ["place"],
        # It may be a function of another project.
        "calling `table.audit` twice": [],
    }.items():
        seeds_named = named(shop, task)
        assert names(seeds_named) == expected
        assert all(sure <= 0.5 for sure in seeds_named.items.values())


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("`shop stock-take --all` prints nothing", ["src/shop/commands/stock_take.py"]),
        ("Run:\n```bash\nshop export-all -o x.csv\n```\n", ["src/shop/cli.py"]),
        ("$ python -m shop --debug refill now", ["src/shop/stock.py"]),
        ("me@host:~/x$ shop refund 12", ["go/cmd/refund.go"]),
        # Not the name of a command, another program, and no commands at all.
        ("`shop audit`", []),
        ("`docker stock-take`", []),
        ("```python\nshop export-all\n```\n", []),
    ],
)
def test_a_command_leads_to_the_function_that_implements_it(
    shop: Packing, task: str, expected: list[str]
) -> None:
    seeds_named = named(shop, task)
    assert [item.path for item in seeds_named.in_order] == expected
    assert seeds_named.files == {}


def test_the_name_of_the_project_counts_nothing(shop: Packing) -> None:
    assert shop.sources.code is not None
    words = seeds.project_words(shop.sources.code)
    assert words == {"shop", "stockroom"}
    asked = question.read("Shop loses orders in the stock-room till").without(words)
    assert {"order", "stock", "room", "till"} <= asked.weights.keys()
    assert words.isdisjoint(asked.weights)
    # Unless there is nothing else.
    assert question.read("shop").without(words).weights


def test_a_pack_does_not_rank_by_the_name_of_the_project(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
        "src/shop/errors.py": "class ShopError(Exception):\n    pass\n\n\nShop = 1\n",
        "src/shop/refunds.py": "def pay_back(order):\n    return order.refund\n",
        **{f"src/shop/part{n}.py": "# shop\ndef f():\n    return 1\n" for n in range(8)},
    }
    with packing(tmp_path / "shop", files) as own:
        ranked = own.build("Shop: shop fails on a refund in the shop").files
    assert [file.path for file in ranked] == ["src/shop/refunds.py"]
    # The name counts if a file has it.
    files = {"package.json": '{"name": "@acme/shop"}', "lib/shop.js": "function place() {}\n"}
    with packing(tmp_path / "own" / "shop", files) as own:
        assert own.sources.code is not None
        assert seeds.project_words(own.sources.code) == frozenset()
