"""`ctx llm` against a real server with a real model: it answers, and the second time it uses
its cache."""

import json
from pathlib import Path

import pytest

from ctx.cli.output import plain
from ctx.operations import llm
from ctx.packs import prompt
from tests.conftest import Ctx
from tests.llm import llama
from tests.packs.test_pack_text import CALLED


def test_the_second_question_about_a_pack_uses_the_cache(
    ctx: Ctx, repo: Path, llama_server: llama.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ctx("init").code == 0
    (repo / "src").mkdir()
    (repo / "src" / "net.py").write_text("def send(text):\n    return text\n")
    pack = prompt.empty_pack("What does net.send give back?")._replace(retrieved=(CALLED,))
    (repo / "pack.json").write_text(json.dumps(plain(pack)))
    words = [
        "llm",
        "--pack=pack.json",
        f"--server={llama_server.url}",
        "--max-tokens=8",
        "--temperature=0",
        "--format=json",
    ]
    monkeypatch.setattr(llm, "PREFIX", "Be brief.")
    monkeypatch.setattr(llm, "INSTRUCTION", "Answer.")
    first = ctx(*words)
    monkeypatch.setattr(llm, "INSTRUCTION", "Answer in a word.")
    again = ctx(*words)
    assert (first.code, again.code) == (0, 0), first.err + again.err
    found = first.json
    assert found["model"].startswith("SmolLM2-135M-Instruct")
    assert (found["backend"], found["where"]) == ("llama_cpp", llama_server.url)
    assert found["answer"].strip()
    assert 0 < found["usage"]["output_tokens"] <= 8
    node = ctx("show", found["kept"]["short_id"], "--format=json").json["node"]
    assert node["metadata"]["model"] == found["model"]
    blob = ctx("debug", "cat", node["metadata"]["blob"]).out
    assert blob == f"{found['answer'].strip()}\n"
    # All but the instruction was known.
    usage = again.json["usage"]
    assert again.json["cache"]["state"] in ("kept", "restored")
    assert usage["input_tokens"] - usage["cached_tokens"] < 30
    assert usage["cached_tokens"] > 60
    cost = ctx("cost", "--format=json")
    assert cost.code == 0
