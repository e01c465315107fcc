"""Streams and their folders."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx.errors import UsageError
from ctx.narrative import document_roles, streams


def test_each_stream_has_its_folder() -> None:
    for stream, folder in {
        "main": "",
        "work": "work/s-1",
        "feature-retry": "feature/retry",
        "retry": "feature/retry",
        "feature": "feature/feature",
        "feature-main": "feature/main",
        "v1.2_x": "feature/v1.2_x",
        "Re\u0301sume\u0301": "feature/Résumé",
        "हिन्दी": "feature/हिन्दी",
    }.items():
        assert streams.folder_of(stream, "s-1") == folder


def test_invalid_stream_names_are_refused() -> None:
    for name in (
        "", "feature-", ".", "..", "../x", "a/b", "a\\b", "-x", ".x", "x.", "a b", "a\n", "a\0",
        "x" * 65, "\u0301x", "a\ud800",
    ):  # fmt: skip
        with pytest.raises(UsageError, match="cannot name a stream") as raised:
            streams.folder_of(name, "s-1")
        assert "letters" in (raised.value.hint or "")
    with pytest.raises(UsageError):
        streams.folder_of("work", "../x")
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    with pytest.raises(UsageError, match="looks like a secret") as raised:
        streams.folder_of(token, "s-1")
    assert token not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("README.md", "overview"),
        ("notes.md", "doc"),
        ("decisions/0001-x-ab12.md", "decision"),
        ("log/2026-01-20-1005-ab12.md", "log"),
        ("tasks/task_0001-x-ab12.md", "task"),
        ("tasks/done/task_0001-x-ab12.md", "task"),
        ("guides/tasks/x.md", "doc"),
    ],
)
@given(stream=st.sampled_from(["main", "work"]) | st.text(max_size=8).map("f{}".format))
def test_stream_and_role_follow_from_the_path(path: str, role: str, stream: str) -> None:
    try:
        folder = streams.folder_of(stream, "s-1")
    except UsageError:
        return
    within = f"{folder}/{path}" if folder else path
    named = streams.stream_named(stream)
    assert document_roles.place(within) == (named, "work" if named == "work" else role)
    assert streams.folder_of(named, "s-1") == folder
