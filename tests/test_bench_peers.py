"""What `python -m bench peers` does without any other tool installed."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from bench.conversations import Case, History
from bench.peers import hook_events, installs, memory, processes, scripted_model
from bench.peers.drivers import aider_mentions
from bench.peers.installs import Peer
from bench.peers.loopback import serving
from bench.peers.table_embeddings import TableEmbeddings
from tests.worker.worker_processes import is_running, until

SLEEP = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(600)"


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_all_processes_of_a_home_are_ended_and_no_other() -> None:
    # Its parent has ended, and it leads a session of its own.
    detach = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]],"
        " start_new_session=True)"
    )
    with subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE) as other:
        with processes.temporary_home() as home:
            subprocess.run(
                [sys.executable, "-c", detach, SLEEP],
                env=processes.environment(home),
                stdout=subprocess.DEVNULL,
                check=True,
            )
            (detached,) = until(lambda: processes.running(home))
            assert processes.cpu_seconds(detached) >= 0
            assert processes.resident_mb([detached]) > 0
        assert not is_running(detached)
        assert other.poll() is None
        other.kill()
    assert not home.exists()


def test_a_process_is_measured_and_its_output_returned(tmp_path: Path) -> None:
    upper = [sys.executable, "-c", "import sys; print(sys.stdin.read().upper()); sys.exit(3)"]
    ran = processes.run(upper, b"event", processes.environment(tmp_path), tmp_path)
    assert (ran.code, ran.out.strip()) == (3, b"EVENT")
    assert ran.cost.cpu > 0
    assert ran.cost.wall > 0


def test_an_event_has_a_number_that_is_found_again(tmp_path: Path) -> None:
    folder = hook_events.make_project(tmp_path)
    said = json.loads(hook_events.fields(folder, "PostToolUse", 17))
    assert hook_events.number_of(said["tool_use_id"]) == 17
    assert hook_events.number_of(f"Ran {said['tool_input']['command']}") == 17
    assert hook_events.number_of("A session") == -1
    assert Path(said["transcript_path"]).exists()


def test_the_model_writes_an_observation_for_each_command() -> None:
    model = scripted_model.ScriptedModel()
    prompt = "<command>make part-3</command> <command>make part-4</command> make part-3"
    answer = model.answer({"messages": [{"role": "user", "content": prompt}]})
    text = answer["choices"][0]["message"]["content"]
    assert text.count("<observation>") == 2
    assert "<title>Ran make part-4</title>" in text
    assert "<observation>" not in scripted_model.reply("Hello")
    assert "<summary>" in scripted_model.reply("Write a <summary>")
    assert model.requests == 1


def test_embeddings_are_served_on_loopback() -> None:
    table = TableEmbeddings()
    with serving(table.answer) as address:
        body = json.dumps({"input": ["login", "banana"]}).encode()
        with urllib.request.urlopen(f"{address}/embeddings", body, timeout=60) as answer:
            data = json.load(answer)["data"]
    assert [len(each["embedding"]) for each in data] == [table.dimensions] * 2
    packed = table.answer({"input": "login", "encoding_format": "base64"})["data"][0]
    assert isinstance(packed["embedding"], str)


def test_questions_with_an_answer_are_sampled_the_same_in_every_run() -> None:
    cases = [Case("any", f"question {each}", frozenset({"D1:1"})) for each in range(20)]
    history = History("talk", [], [*cases, Case("abstention", "nothing", frozenset())])
    chosen = memory.sample(history, 5)
    assert chosen == memory.sample(history, 5)
    assert len(chosen) == 5
    assert all(case.wanted for case in memory.sample(history, 100))
    assert memory.score(cases[0], ["D1:2", "D1:1"]) == 1.0


def test_the_first_turns_of_a_conversation_keep_their_questions() -> None:
    entries = [{"unit": unit, "content": unit} for unit in ("D1:1", "D1:2", "D2:1")]
    early = Case("any", "early", frozenset({"D1:1", "D1:2"}))
    late = Case("any", "late", frozenset({"D1:1", "D2:1"}))
    cut = memory.opening(History("talk", entries, [early, late]), 2)
    assert cut == History("talk", entries[:2], [early])


def test_mentions_are_found_as_aider_finds_them() -> None:
    files = ["src/app.py", "src/session/store.py", "tests/store.py", "lib/Makefile"]
    text = "Fix `src/app.py`: the Session of store.py, see Makefile."
    words = aider_mentions.mentioned_words(text)
    assert {"Session", "store", "py"} <= words
    # Two files are called store.py, and Makefile could be a plain word.
    assert aider_mentions.mentioned_files(text, files) == {"src/app.py"}
    named = aider_mentions.files_named_as(words, files)
    assert named == {"src/session/store.py", "tests/store.py", "lib/Makefile"}


def test_a_tool_that_needs_a_newer_python_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installs, "FOLDER", tmp_path)
    peer = Peer("future", "1.0", needs_python=(9, 9))
    with pytest.raises(SystemExit, match=r"future 1\.0 needs Python 9\.9: add `--python PATH`"):
        installs.install(peer, [sys.executable])
    with pytest.raises(SystemExit, match="This is no Python"):
        installs.install(peer, [str(tmp_path / "python")])
    assert not peer.is_installed
