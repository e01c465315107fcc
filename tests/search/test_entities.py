"""Paths, names and stack frames in the text of a task."""

import string

from hypothesis import given
from hypothesis import strategies as st

from ctx.search.entities import MOST, Entities, find
from ctx.search.trace_frames import CodeFrame

NOTHING = Entities((), (), (), (), (), ())


def test_names_and_paths_in_prose_are_found() -> None:
    assert find(
        "Fix the timeout in core::net::Client and `Client.connect`, see src/net/client.rs:42.\n"
        "It calls connect_all() and MyClass, e.g. in django.db.models.query and/or README.md;\n"
        'error[E0433], TS2304 and SHA256: "could not find retry" (task_0043, Decision_7)'
    ) == Entities(
        paths=("src/net/client.rs", "README.md"),
        names=(
            *("Client.connect", "core::net::Client", "connect_all", "MyClass"),
            "django.db.models.query",
        ),
        codes=("E0433", "TS2304"),
        tasks=("task_0043", "decision_7"),
        quoted=("could not find retry",),
        frames=(CodeFrame("src/net/client.rs", 42, ""),),
    )


def test_plain_words_and_web_addresses_are_not_entities() -> None:
    assert find("the tests fail on Mondays, and/or when nobody looks. See you.") == NOTHING
    assert find("почему тесты падают? 接続が切れる") == NOTHING
    assert find("see https://example.org/a/b/c.py and ftp://x.y/z.rs") == NOTHING
    assert find("") == NOTHING


def test_any_word_in_inline_code_is_a_name() -> None:
    assert find("call `run` with `a b` and `src/run.py`") == Entities(
        ("src/run.py",), ("run",), (), (), ("a b",), ()
    )


def test_a_line_number_in_words_is_read() -> None:
    assert find('broken in "app/net.py", line 12 and in lib/a.go on line 3').frames == (
        CodeFrame("app/net.py", 12, ""),
        CodeFrame("lib/a.go", 3, ""),
    )


def test_the_innermost_frame_of_python_is_the_last() -> None:
    assert find(
        "Traceback (most recent call last):\n"
        '  File "/app/main.py", line 3, in <module>\n'
        "    run_all()\n"
        '  File "/app/net.py", line 7, in run_all\n'
        "    self.connect()\n"
        "ValueError: bad\n"
    ) == NOTHING._replace(
        names=("ValueError",),
        frames=(CodeFrame("/app/net.py", 7, "run_all"), CodeFrame("/app/main.py", 3, "")),
    )


def test_the_number_of_entities_is_limited() -> None:
    found = find(
        "\n".join(f"name_{number}() src/a/file_{number}.py E{number:04}" for number in range(999))
    )
    assert all(len(each) <= MOST for each in found)
    assert (len(found.names), len(found.paths), len(found.codes)) == (MOST, MOST, MOST)


HARD = [
    *("`", '"', "'a ", "a/", "a.", "a::", "at (", 'File "', "#0 0x1 in ", "\n", "\t", " line 1"),
    *("aB", "$ ", "`a b` ", "a-b ", "```sh\n", "./a/"),
]


def test_hostile_texts_take_linear_time() -> None:
    """With quadratic time, this would not end."""
    for piece in HARD:
        find(piece * (100_000 // len(piece)))
        find((piece * 100 + "\n") * (2_000 // len(piece)))


@given(st.text(alphabet=string.printable + "é日\u2028", max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    found = find(text)
    assert all(len(each) <= MOST for each in found)
    # What is named is in the text.
    for name in found.names:
        assert name in text


def test_commands_are_read_without_options_and_arguments() -> None:
    text = (
        "`shop place-order --gift` and `./bin/shop stock:take now` fail, `a b` and `x = y` too.\n"
        "```console\n(venv) me@host:~/shop$ DEBUG=1 sudo shop --verbose export all /tmp/x\nDone.\n"
        "$ python3 -m shop.cli refund 12\n```\nIt costs 5 $ a month.\n"
    )
    assert find(text).commands == (
        *("shop place-order", "shop stock:take now", "shop export all", "shop refund"),
    )
