"""Precedence of layers, settings that a project may not set, and messages about mistakes."""

from pathlib import Path

import pytest

from ctx.config.resolve import Config, load, survey
from ctx.errors import ConfigInvalid, UsageError


class Files:
    """A user file and a project file, and the configuration that they give."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "own" / "config.toml"
        self.project = folder / "project" / ".ctx" / "config.toml"
        self.user.parent.mkdir()
        self.project.parent.mkdir(parents=True)

    def load(self, environment: dict[str, str] | None = None, *overrides: str) -> Config:
        return load(str(self.user), str(self.project), environment or {}, overrides)

    def refused(self, environment: dict[str, str] | None = None, *overrides: str) -> str:
        with pytest.raises(ConfigInvalid) as raised:
            self.load(environment, *overrides)
        return raised.value.message


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


BUDGET = "retrieval.default_budget"


def test_later_layers_win(files: Files) -> None:
    assert files.load().integer(BUDGET) == 16_000
    files.user.write_text("[retrieval]\ndefault_budget = 1001\n")
    assert files.load().integer(BUDGET) == 1001
    files.project.write_text('[repo]\nid = "x"\n\n[retrieval]\ndefault_budget = 1002\n')
    assert files.load().integer(BUDGET) == 1002
    environment = {"CTX_RETRIEVAL_DEFAULT_BUDGET": "1003"}
    assert files.load(environment).integer(BUDGET) == 1003
    config = files.load(environment, f"{BUDGET}=1004", f"{BUDGET}=1005")
    assert config.integer(BUDGET) == 1005
    assert [(source.layer, source.place, value) for source, value in config.explain(BUDGET)] == [
        ("default", "default", 16_000),
        ("user", f"{files.user}:2", 1001),
        ("project", ".ctx/config.toml:5", 1002),
        ("environment", "CTX_RETRIEVAL_DEFAULT_BUDGET", 1003),
        ("flag", "--set retrieval.default_budget=1004", 1004),
        ("flag", "--set retrieval.default_budget=1005", 1005),
    ]


def test_each_kind_has_its_getter(files: Files) -> None:
    config = files.load()
    assert config.integer("gc.keep_days") == 7
    assert config.number("llm.timeout_seconds") == 120.0
    assert config.flag("llm.synthesis") is True
    assert config.text("llm.model") == "default"
    assert config.choice("share.sessions") == "none"
    assert config.texts("retrieval.expand_labels")[:2] == ("CALLS", "IMPORTS")


def test_unknown_names_and_wrong_types_raise_errors(files: Files) -> None:
    config = files.load()
    with pytest.raises(KeyError):
        config.integer("gc.keep_weeks")
    with pytest.raises(TypeError):
        config.text("gc.keep_days")
    with pytest.raises(TypeError):
        config.integer("llm.synthesis")
    with pytest.raises(TypeError):
        config.choice("llm.model")


def test_a_project_cannot_configure_models_or_sharing(files: Files) -> None:
    files.project.write_text(
        '[repo]\nid = "x"\n[llm]\nserver_url = "https://evil.example"\nbackend = 3\n'
        '[share]\nsessions = "all"\n[gc]\nkeep_days = 0\n'
    )
    config = files.load()
    assert config.text("repo.id") == "x"
    assert config.text("llm.server_url") == "http://127.0.0.1:8080"
    assert config.choice("share.sessions") == "none"
    assert config.integer("gc.keep_days") == 7
    assert config.warnings == (
        ".ctx/config.toml:3: [llm] is ignored: a project may not set it; your own file may.",
        ".ctx/config.toml:6: [share] is ignored: a project may not set it; your own file may.",
        ".ctx/config.toml:8: [gc] is ignored: a project may not set it; your own file may.",
    )


def test_a_user_file_cannot_name_a_project(files: Files) -> None:
    files.user.write_text('[repo]\nid = "x"\n')
    config = files.load()
    assert config.text("repo.id") == ""
    [warning] = config.warnings
    assert warning == (
        f"{files.user}:1: "
        "[repo] is ignored: it names one project, and this file is for all of them."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '\n[storage] # x\ncompression_level = "fast"\n',
            '3: storage.compression_level must be a whole number from 0 to 22, not "fast".',
        ),
        (
            "storage = { compression_level = 23 }\n",
            "1: storage.compression_level must be a whole number from 0 to 22, not 23.",
        ),
        (
            "storage.'compression_level' = true",
            "1: storage.compression_level must be a whole number from 0 to 22, not true.",
        ),
        (
            '[ingestion]\nignore_globs = [\n  "a",\n  1,\n]\n',
            '2: ingestion.ignore_globs must be a list of texts, not ["a", 1].',
        ),
        (
            "[storage]\nshard_prefix_bytes = 2\n",
            "2: storage.shard_prefix_bytes must be 1, the only value there is, not 2.",
        ),
        (
            "[retrieval]\nmax_depth = 1979-05-27\n",
            "2: retrieval.default_depth must be a whole number from 0 to 10, not 1979-05-27.",
        ),
        (
            "[storage.compression_level]\nx = 1\n",
            "1: storage.compression_level must be a whole number from 0 to 22, not a table.",
        ),
        ("x = 1\nstorage = 3\n", "2: storage must be a table."),
        ("[[storage]]\ncompression_level = 3\n", "1: storage must be a table."),
    ],
)
def test_a_wrong_value_is_reported_with_its_line(files: Files, text: str, message: str) -> None:
    files.project.write_text(text)
    assert files.refused() == f".ctx/config.toml:{message}"


def test_a_wrong_value_is_reported_with_its_source(files: Files) -> None:
    files.user.write_text("[gc]\nkeep_days = -1\n")
    assert files.refused() == (
        f"{files.user}:2: gc.keep_days must be a whole number from 0 to 36500, not -1."
    )
    files.user.unlink()
    assert files.refused({"CTX_GC_KEEP_DAYS": "soon"}) == (
        'CTX_GC_KEEP_DAYS: gc.keep_days must be a whole number from 0 to 36500, not "soon".'
    )
    assert files.refused({}, "gc.keep_days=") == (
        '--set gc.keep_days=: gc.keep_days must be a whole number from 0 to 36500, not "".'
    )


def test_a_survey_lists_every_problem(files: Files) -> None:
    files.user.write_text("[gc\n")
    files.project.write_text("[storage]\ncompression_level = 99\n[retrieval]\nnarrative_days = 3\n")
    config = survey(str(files.user), str(files.project), {"CTX_GC_KEEP_DAYS": "x"}, ())
    assert [str(problem.message).split(": ")[0] for problem in config.problems] == [
        f"{files.user}:1:4",
        ".ctx/config.toml:2",
        "CTX_GC_KEEP_DAYS",
    ]
    assert config.integer("retrieval.narrative_days") == 3
    assert config.integer("storage.compression_level") == 3


def test_unknown_names_give_warnings_with_suggestions(files: Files) -> None:
    files.project.write_text(
        '[repo]\nid = "x"\n\n[storage]\ncompresion_level = 9\n"\\u001b[2J" = 1\n[storge]\n[zzz]\n'
    )
    first, *others = files.load().warnings
    assert first == (
        ".ctx/config.toml:5: there is no setting storage.compresion_level; "
        "did you mean storage.compression_level?"
    )
    assert others == [
        '.ctx/config.toml:6: there is no setting storage."\\u001b[2J".',
        ".ctx/config.toml:7: there is no section [storge]; did you mean [storage]?",
        ".ctx/config.toml:8: there is no section [zzz].",
    ]


def test_the_number_of_warnings_is_limited(files: Files) -> None:
    files.project.write_text("[storage]\n" + "".join(f"x{n} = 1\n" for n in range(5000)))
    warnings = files.load().warnings
    assert len(warnings) == 11
    assert warnings[-1] == ".ctx/config.toml: and 4990 more like these."


def test_values_without_effect_give_warnings(files: Files) -> None:
    files.project.write_text('[index]\nbackend = "redb"\nenable_tantivy = true\n')
    config = files.load()
    assert config.choice("index.backend") == "sqlite"
    assert config.flag("index.enable_tantivy") is False
    backend, search = config.warnings
    assert backend == (
        '.ctx/config.toml:2: index.backend = "redb" has no effect: SQLite is used instead.'
    )
    assert search == (
        ".ctx/config.toml:3: index.enable_tantivy = true has no effect: "
        "SQLite full-text search is always on."
    )


def test_settings_without_effect_give_one_warning(files: Files) -> None:
    files.user.write_text("[context]\nworker_timeout_s = 5.0\n[staging]\ncompact_hours = 9\n")
    files.project.write_text('[storage]\nlock_timeout_seconds = "any"\n[staging]\nx = 1\n')
    config = files.load({"CTX_LLM_RETRIES": "0"})
    assert config.mentions == {}
    unknown, without_effect = config.warnings
    assert unknown == ".ctx/config.toml:4: there is no setting staging.x."
    assert without_effect == (
        f"Without effect, and can be removed: context.worker_timeout_s ({files.user}:2),"
        f" staging.compact_hours ({files.user}:4),"
        " storage.lock_timeout_seconds (.ctx/config.toml:2), CTX_LLM_RETRIES."
    )
    with pytest.raises(UsageError, match=r"llm\.retries has no effect"):
        files.load({}, "llm.retries=0")


def test_an_older_name_is_used_unless_the_current_one_is_set(files: Files) -> None:
    files.project.write_text("[retrieval]\nmax_depth = 5\n")
    assert files.load().integer("retrieval.default_depth") == 5
    assert files.load().explain("retrieval.default_depth")[-1].source.place == ".ctx/config.toml:2"
    files.project.write_text("[retrieval]\nmax_depth = 5\ndefault_depth = 4\n")
    assert files.load().integer("retrieval.default_depth") == 4
    [warning] = files.load().warnings
    assert warning == (
        ".ctx/config.toml:2: retrieval.max_depth is ignored: "
        "retrieval.default_depth is set as well."
    )
    assert files.load({"CTX_RETRIEVAL_MAX_DEPTH": "3"}).integer("retrieval.default_depth") == 3
    assert files.load({}, "retrieval.max_depth=2").integer("retrieval.default_depth") == 2


def test_some_settings_have_short_variables(files: Files) -> None:
    short = {"CTX_DEFAULT_BUDGET": "777", "CTX_TRANSCRIPT_TIMEOUT": "1.5"}
    config = files.load(short)
    assert config.integer("view.default_budget") == 777
    assert config.number("hooks.transcript_timeout_seconds") == 1.5
    for environment in (
        {**short, "CTX_VIEW_DEFAULT_BUDGET": "888"},
        {"CTX_VIEW_DEFAULT_BUDGET": "888", **short},
    ):
        assert files.load(environment).integer("view.default_budget") == 888


def test_variables_that_are_not_settings_are_ignored(files: Files) -> None:
    config = files.load(
        {
            "CTX_HOME": "/x",
            "CTX_DB": "x",
            "CTX_SESSION": "x",
            "CTX_OFF": "1",
            "CTX_CUDA": "1",
            "CTX_": "1",
            "ctx_gc_keep_days": "x",
            "CTX_gc_keep_days": "x",
            "CTX_GC_KEEP_DAYS": "",
            "PATH": "/bin",
            "CTX_RETRIEVAL_DEFAULT_BUDGE": "1",
        }
    )
    assert config.mentions == {}
    assert config.warnings == (
        "CTX_RETRIEVAL_DEFAULT_BUDGE is ignored; did you mean CTX_RETRIEVAL_DEFAULT_BUDGET?",
    )


def test_invalid_flags_are_refused(files: Files) -> None:
    with pytest.raises(UsageError, match=r"--set gc\.keep_days has no value"):
        files.load({}, "gc.keep_days")
    with pytest.raises(UsageError) as raised:
        files.load({}, "gc.keep_day=3")
    assert raised.value.hint == "Did you mean `gc.keep_days`?"


def test_without_a_project_its_file_is_not_read(files: Files) -> None:
    files.project.write_text("[storage]\ncompression_level = 9\n")
    assert load(str(files.user), None, {}, ()).integer("storage.compression_level") == 3
