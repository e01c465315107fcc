"""Sessions over small repositories in JavaScript."""

from tests.e2e.claude_code.replay.scenario import Scenario, Turn, bash

PACKAGE = '{\n  "name": "cart",\n  "type": "module",\n  "scripts": {"test": "node --test"}\n}\n'
NODE_TEST = "node --test"


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


SCENARIOS = (FLAKY,)
