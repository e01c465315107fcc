"""What the sessions benchmark computes without a detector or a layer, from a kit of a few lines."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import session_ablations
from bench.session_ablations import Kit

GOLD = """
def plain(text):
    return text.lower()

def hit(label, texts):
    return next((text for text in texts if label["match"][0][0] in text), None)
"""
PRODUCT = """
def blocks(text):
    return text.split("|")

def context_items(text):
    return [("Hints", line) for line in text.splitlines()[1:]]

def tokens(text):
    return len(text)
"""
LABELS = {
    "sessions": [
        {
            "sid": "s1",
            "keep": [
                {"kind": "correction", "what": "pnpm", "match": [["pnpm"]]},
                {"kind": "fact", "what": "cents", "match": [["cents"]]},
                {"kind": "fact", "what": "port", "match": [["port"]]},
                {"kind": "fact", "what": "owner", "match": [["owner"]]},
            ],
            "must_not": [{"what": "redis", "match": [["redis"]]}],
        }
    ],
    "starts": [
        {
            "sid": "s2",
            "needed": [
                {"what": "pnpm", "match": [["pnpm"]]},
                {"what": "port", "match": [["port"]]},
            ],
            "must_not": [{"what": "redis", "match": [["redis"]]}],
        }
    ],
}


def _kept(what: str) -> dict[str, Any]:
    return {"what": what, "final": what == "port"}


def _given(what: str, *systems: str) -> dict[str, Any]:
    every = ("context", "context + first prompt", "BM25 with the first prompt")
    return {"what": what, "by": {name: "…" if name in systems else None for name in every}}


RESULTS = [
    {
        "sessions": [
            {
                "sid": "s1-whole",
                "keep": [_kept(each) for each in ("pnpm", "cents", "port", "owner")],
                "must_not": [{"what": "redis"}],
            }
        ],
        "starts": [
            {
                "sid": "s2-whole",
                "needed": [_given("pnpm"), _given("port", "BM25 with the first prompt")],
                "must_not": [_given("redis")],
                "tokens": {
                    "context": 30,
                    "context + first prompt": 44,
                    "BM25 with the first prompt": 40,
                },
            }
        ],
        "evidence": {
            "sessions": {
                "s1-whole": {
                    "nodes": ["Use pnpm", "Prices in cents|Redis is used", "pnpm, port 80"],
                    "kinds": ["kind:rule", "kind:decision", "summary"],
                }
            },
            "starts": {
                "s2-whole": {
                    "pieces": {"context": ["Use pnpm", "Yesterday: pnpm"]},
                    "sections": ["Rules", "Recent Sessions"],
                    "tokens": {"context": 30},
                    "hints": [["The port is 80", True], ["later", True]],
                }
            },
        },
    }
]


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kit:
    for name, text in (("gold.py", GOLD), ("product.py", PRODUCT)):
        (tmp_path / name).write_text(text)
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "shop.json").write_text(json.dumps(LABELS))
    found = Kit(tmp_path)
    for name in ("gold", "product"):
        monkeypatch.delitem(sys.modules, name)
    return found


def test_what_is_kept_without_each_detector(kit: Kit) -> None:
    table = session_ablations.kept_table(session_ablations.sessions(kit, RESULTS))
    assert [line.split() for line in table[1:]] == [
        ["all", "detectors", "75.0", "100.0", "1", "3.0"],
        ["without", "decision", "50.0", "100.0", "0", "2.0"],
        ["without", "rule", "75.0", "100.0", "1", "2.0"],
        ["without", "summary", "50.0", "100.0", "1", "2.0"],
        ["only", "decision", "25.0", "0.0", "1", "1.0"],
        ["only", "rule", "25.0", "100.0", "0", "1.0"],
        ["only", "summary", "50.0", "100.0", "0", "1.0"],
        ["baseline:", "the", "final", "message", "25.0"],
    ]


def test_what_is_given_without_each_layer(kit: Kit) -> None:
    table = session_ablations.given_table(session_ablations.starts(kit, RESULTS), RESULTS)
    assert [(line[:44].strip(), *line[44:].split()) for line in table[1:]] == [
        ("context and first prompt", "100.0", "0", "44"),
        ("context", "50.0", "0", "30"),
        ("without Rules", "100.0", "0", "36"),
        ("without Recent Sessions", "100.0", "0", "29"),
        ("without first prompt", "50.0", "0", "30"),
        ("only Rules", "50.0", "0", "8"),
        ("only Recent Sessions", "50.0", "0", "15"),
        ("only first prompt", "50.0", "0", "14"),
        ("baseline: BM25 with the first prompt", "50.0", "0", "40"),
        ("starts with an answer to the first prompt", "1", "of", "1"),
    ]
