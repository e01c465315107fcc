"""Sessions over small repositories in JavaScript."""

from tests.e2e.claude_code.replay.scenario import Expected, Scenario, Turn, bash, edit, read, write

CART = """// A cart of things to buy.
export class Cart {
  constructor() {
    this.lines = [];
  }

  add(name, price) {
    this.lines.push({ name, price });
  }

  total() {
    return this.lines.reduce((sum, line) => sum + line.price, 0);
  }
}
"""
CART_TEST = """import { test } from "node:test";
import assert from "node:assert";
import { Cart } from "../src/cart.js";

test("totals are exact", () => {
  const cart = new Cart();
  cart.add("tea", 0.1);
  cart.add("cup", 0.2);
  assert.strictEqual(cart.total(), 0.3);
});
"""
PACKAGE = '{\n  "name": "cart",\n  "type": "module",\n  "scripts": {"test": "node --test"}\n}\n'
NODE_TEST = "node --test"

CART_TOTAL = Scenario(
    "cart_total",
    {"package.json": PACKAGE, "src/cart.js": CART, "test/cart.test.js": CART_TEST},
    (
        Turn(
            "A customer saw 0.30000000000000004 on the bill. Find out why and fix it.",
            (
                bash(NODE_TEST),
                read("src/cart.js", "test/cart.test.js"),
                (
                    "The reason is that Cart.total adds prices as floats. Shall I keep prices in"
                    " cents?"
                ),
            ),
        ),
        Turn(
            "Yes. We store money as integer cents everywhere, so that sums are exact.",
            (
                edit(
                    "src/cart.js",
                    "    this.lines.push({ name, price });\n",
                    "    this.lines.push({ name, cents: Math.round(price * 100) });\n",
                ),
                edit(
                    "src/cart.js",
                    "sum + line.price, 0);",
                    "sum + line.cents, 0) / 100;",
                ),
                bash(NODE_TEST),
                (
                    "`Cart.add` keeps prices as cents and `Cart.total` sums cents in src/cart.js;"
                    " the test passes."
                ),
            ),
        ),
    ),
    (
        Expected("bugfix", ("totals are exact",), ("src/cart.js",)),
        Expected("decision", ("integer cents", "exact")),
    ),
    5,
    ("duration_ms", "TAP version", "Shall I", "ℹ tests"),
    {
        "request": ("0.30000000000000004",),
        "completed": ("Cart.total",),
        "files_edited": ("src/cart.js",),
    },
)

FLAKY_TEST = """import { test } from "node:test";
import assert from "node:assert";
import { existsSync, writeFileSync } from "node:fs";

test("starts warm", () => {
  const warm = existsSync("cache.txt");
  writeFileSync("cache.txt", "warm");
  assert.ok(warm, "the cache is cold");
});
"""

FLAKY = Scenario(
    "flaky",
    {"package.json": PACKAGE, "test/warm.test.js": FLAKY_TEST, ".gitignore": "cache.txt\n"},
    (
        Turn(
            "Do the tests pass?",
            (
                bash(NODE_TEST),
                bash(NODE_TEST, "One failed. I'll run them again."),
                (
                    "They pass at the second run: the test 'starts warm' fails whenever cache.txt"
                    " is not there yet. I changed nothing."
                ),
            ),
        ),
    ),
    (),
    2,
    ("Fixed", "I'll run them again", "duration_ms"),
    {"request": ("tests", "pass")},
)

UNFINISHED = Scenario(
    "unfinished",
    {
        "package.json": PACKAGE,
        "src/slug.js": "export function slug(title) {\n"
        '  return title.toLowerCase().replace(" ", "-");\n}\n',
        "test/slug.test.js": 'import { test } from "node:test";\n'
        'import assert from "node:assert";\n'
        'import { slug } from "../src/slug.js";\n\ntest("accents are folded", () => {\n'
        '  assert.strictEqual(slug("Crème brûlée au thé"), "creme-brulee-au-the");\n});\n',
    },
    (
        Turn(
            "Slugs have accents in them. They should be plain letters.",
            (
                bash(NODE_TEST),
                read("src/slug.js"),
                edit(
                    "src/slug.js",
                    '.replace(" ", "-")',
                    '.replaceAll(" ", "-")',
                ),
                bash(NODE_TEST),
                write(
                    "src/fold.js",
                    'export function fold(text) {\n  return text.normalize("NFC");\n}\n',
                ),
                bash(NODE_TEST),
                (
                    "I added `fold` in src/fold.js, but it is not called yet, and the test"
                    " 'accents are folded' still fails. Next, slug has to call fold with NFD and"
                    " drop the marks."
                ),
            ),
        ),
    ),
    (),
    2,
    ("Fixed", "duration_ms"),
    {
        "request": ("accents",),
        "next_steps": ("accents are folded",),
        "files_edited": ("src/slug.js", "src/fold.js"),
    },
)

SCENARIOS = (CART_TOTAL, FLAKY, UNFINISHED)
