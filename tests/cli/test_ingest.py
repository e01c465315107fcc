import hashlib
import os
from pathlib import Path
from typing import Any

from tests.cli.conftest import Piped
from tests.conftest import Ctx


def ingest(ctx: Ctx, *words: str) -> Any:
    return ctx("ingest", *words, "--format", "json").json


def test_a_file_becomes_a_source(ctx: Ctx, repo: Path) -> None:
    (repo / "README.md").write_text("\n# Shop\n\nSells things.\n")
    ran = ctx("ingest", "README.md", "--tag=area:shop", "--tag=type:documentation")
    node = ctx("list", "--format", "json").json["nodes"][0]
    assert ran.out == f"Ingested:\n  {node['id'][:12]}  {repo}/README.md  6 tokens\n"
    assert (node["type"], node["content"]) == ("source", "# Shop\n\nSells things.")
    assert node["tags"] == ["area:shop", "project:app", "type:documentation"]
    digest = hashlib.blake2b(node["content"].encode(), digest_size=16).hexdigest()
    path = str(repo / "README.md")
    said = {"path": path, "bytes": 23, "hash": digest, "source": "repository"}
    assert node["metadata"] == said
    ran = ctx("ingest", "README.md", "--name=b.md")
    assert (ran.code, ran.out) == (2, "")
    assert "--name is only for text from stdin" in ran.err


def test_an_unchanged_file_adds_nothing_and_a_changed_one_takes_its_place(
    ctx: Ctx, folder: Path
) -> None:
    page = folder / "a.md"
    page.write_text("One")
    first = ingest(ctx, "a.md", "--tag=tier:reference", "--tag=x:y", "--summary=About")["files"][0]
    assert first["state"] == "new"
    page.touch()
    again = ingest(ctx, "a.md", "--tag=new:tag")["files"][0]
    assert (again["state"], again["id"]) == ("unchanged", first["id"])
    assert ctx("ingest", "a.md").out == "1 file unchanged.\n"
    page.write_text("Two")
    changed = ingest(ctx, "a.md", "--tag=tier:working")["files"][0]
    assert (changed["state"], changed["supersedes"]) == ("changed", first["id"])
    (node,) = ctx("list", "--format", "json").json["nodes"]
    assert (node["content"], node["summary"]) == ("Two", "About")
    assert node["tags"] == ["new:tag", "tier:working", "x:y"]
    page.write_text("One")
    assert ingest(ctx, "a.md")["files"][0]["supersedes"] == changed["id"]
    assert ctx("undo").code == 0
    assert ctx("list", "--format", "json").json["nodes"][0]["content"] == "Two"


def test_what_is_no_text_is_refused_by_name(ctx: Ctx, folder: Path) -> None:
    (folder / "good.md").write_text("good")
    (folder / "empty.md").write_text(" \n")
    (folder / "image.png").write_bytes(b"\x89PNG\0")
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    (folder / "large.txt").write_text("x" * 2000)
    (folder / "sub").mkdir()
    os.mkfifo(folder / "pipe")
    names = ["good.md", "empty.md", "image.png", "latin.txt", "large.txt", "sub", "pipe", "none"]
    ran = ctx("--set", "ingestion.max_file_bytes=1000", "ingest", *names, "--format", "json")
    assert ran.code == 1
    assert [item["state"] for item in ran.json["files"]] == ["new"]
    assert {os.path.basename(item["path"]): item["reason"] for item in ran.json["refused"]} == {
        "empty.md": "there is no content",
        "image.png": "it is binary",
        "latin.txt": "it is not UTF-8 text",
        "large.txt": "its 2,000 bytes are over the limit of 1,000 bytes (ingestion.max_file_bytes)",
        "sub": "it is a folder",
        "pipe": "it is not a plain file",
        "none": "it cannot be read: No such file or directory",
    }
    assert "Refused 1 file:\n" in ctx("ingest", "none").out


def test_secrets_stay_outside(ctx: Ctx, folder: Path) -> None:
    secret = "ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA3"
    (folder / "env.txt").write_text(f"host=x\ntoken={secret}\n")
    ran = ctx("ingest", "env.txt")
    assert "1 secret removed" in ran.err
    assert "line 2 (github-token)" in ran.err
    assert "[redacted:github-token]" in ctx("export").out
    assert secret not in ctx("export").out
    assert ctx("ingest", "env.txt").out == "1 file unchanged.\n"


def test_the_same_file_by_two_names(ctx: Ctx, folder: Path) -> None:
    (folder / "a.md").write_text("A")
    assert len(ingest(ctx, "a.md", "./a.md", str(folder / "a.md"))["files"]) == 1
    (folder / "link.md").symlink_to("a.md")
    (again,) = ingest(ctx, "link.md", "a.md")["files"]
    assert (again["state"], again["path"]) == ("unchanged", str(folder / "a.md"))
    assert len(ctx("list", "--format", "json").json["nodes"]) == 1
    # A name that is not UTF-8.
    bad = os.fsdecode(b"caf\xe9.md")
    (folder / bad).write_text("Coffee")
    (folder / "tea.md").write_text("Tea")
    ran = ctx("ingest", bad, "tea.md")
    assert ran.code == 1
    assert ran.out.startswith("Ingested:\n")
    assert ran.out.endswith(f"Refused 1 file:\n  {folder}/caf\\xe9.md  its name is not UTF-8\n")


def test_from_stdin(ctx: Ctx, piped: Piped) -> None:
    piped(b"What was printed")
    assert ctx("ingest", "-").code == 2
    assert ingest(ctx, "-", "--name=run")["files"][0]["path"] == "run"
    piped(b"What was printed")
    assert ingest(ctx, "-", "--name=run")["files"][0]["state"] == "unchanged"
    piped(b"Something else")
    assert ingest(ctx, "-", "--name=run")["files"][0]["state"] == "changed"
    piped(b"a\0b")
    ran = ctx("ingest", "-", "--name=binary")
    assert ran.code == 1
    assert "NUL" in ran.out
