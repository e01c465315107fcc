"""The table of all settings: name, default, bounds, and one sentence on what it governs."""

from collections.abc import Iterable

from ctx.config.setting import Setting
from ctx.errors import UsageError

# What a project file may set. It comes with a clone, from people whom the user may not know.
PROJECT_SECTIONS = frozenset({"repo", "storage", "index", "ingestion", "retrieval", "narrative"})

# These name one project: in a user file they would give every project the same name.
PROJECT_ONLY_SECTIONS = frozenset({"repo"})

# These are set in the user's own file alone: a project may set variables for the programs that
# an agent runs, and hooks are among them.
USER_FILE_SECTIONS = frozenset({"agents"})

# Names that are read wherever a setting is named, and never written.
RENAMED = {"retrieval.max_depth": "retrieval.default_depth"}

# Variables that do not follow the pattern CTX_SECTION_KEY. Where both are set, the pattern wins.
VARIABLES = {
    "CTX_DEFAULT_BUDGET": "view.default_budget",
    "CTX_TRANSCRIPT_TIMEOUT": "hooks.transcript_timeout_seconds",
}

_TOKENS = 10_000_000
_COUNT = 1_000_000
# No object can be larger than this.
_LARGEST_FILE = 256 * 1024 * 1024
_BYTES = 1 << 40
_DAYS = 36_500
_SECONDS = 3_600
_PRICE = r"[0-9]{1,6}(?:\.[0-9]*)?"


def flag(name: str, default: bool, doc: str) -> Setting:
    return Setting(name, "flag", default, doc)


def whole(name: str, default: int, low: int, high: int, doc: str) -> Setting:
    return Setting(name, "whole", default, doc, low, high)


def number(name: str, default: float, low: float, high: float, doc: str) -> Setting:
    return Setting(name, "number", default, doc, low, high)


def text(name: str, default: str, doc: str, *, starts: tuple[str, ...] = ()) -> Setting:
    return Setting(name, "text", default, doc, starts=starts)


def texts(name: str, default: tuple[str, ...], doc: str) -> Setting:
    return Setting(name, "texts", default, doc)


def choice(name: str, default: str, choices: tuple[str, ...], doc: str) -> Setting:
    return Setting(name, "choice", default, doc, choices=choices)


EXPAND_LABELS = (
    *("CALLS", "IMPORTS", "REFERENCES", "USES_TYPE", "IMPLEMENTS", "CONTAINS"),
    *("DEPENDS_ON", "MENTIONS", "RELATES_TO", "SUPERSEDES", "DERIVED_FROM"),
)
"""What a pack follows, where nobody says otherwise."""

_TABLE = (
    # The project itself.
    text("repo.id", "", "The project's name; empty: the name of its folder."),
    text("repo.ctx_version", "", "The version of ctx that made the project store."),
    # Objects on disk.
    whole("storage.compression_level", 3, 0, 22, "How hard objects are compressed, by zstd."),
    whole("storage.shard_prefix_bytes", 1, 1, 1, "Bytes of an object's id that name its folder."),
    number(
        "storage.lock_timeout_seconds",
        30.0,
        0,
        _SECONDS,
        "How long a command waits for another one that is writing to the same store.",
    ),
    # The index.
    choice("index.backend", "sqlite", ("sqlite",), "The database that holds the index.")._replace(
        older=("redb",), instead="SQLite is used instead"
    ),
    flag("index.enable_tantivy", False, "Full-text search by Tantivy.")._replace(
        older=(True,), instead="SQLite's own full-text search is used instead, and is always on"
    ),
    # What enters the store.
    texts(
        "ingestion.ignore_globs",
        ("target/**", ".git/**", "node_modules/**"),
        "Files that are never taken in, beside those that git ignores.",
    ),
    whole(
        "ingestion.max_file_bytes",
        10 * 1024 * 1024,
        1,
        _LARGEST_FILE,
        "The largest file that `ctx add file` takes.",
    ),
    whole("ingestion.max_files_per_step", 10, 1, _COUNT, "Files that capture takes from one step."),
    whole(
        "ingestion.max_bytes_per_step",
        1_048_576,
        1,
        _BYTES,
        "Bytes that capture takes from one step.",
    ),
    whole(
        "ingestion.max_log_lines",
        500,
        0,
        _COUNT,
        "Lines of a command's output that capture keeps.",
    ),
    whole(
        "ingestion.max_edges_per_step",
        100,
        0,
        _COUNT,
        "Relations that capture, or `ctx add file --extract-semantics`, takes from one step.",
    ),
    # Packs.
    whole("retrieval.default_budget", 16_000, 100, _TOKENS, "Tokens of a pack."),
    whole(
        "retrieval.reserved_for_response",
        0,
        0,
        _TOKENS,
        "Tokens of a pack's budget that are left free for the answer.",
    ),
    whole(
        "retrieval.default_depth", 2, 0, 10, "Steps that a pack goes along edges from its seeds."
    ),
    texts(
        "retrieval.expand_labels",
        EXPAND_LABELS,
        "Types of the edges that a pack follows.",
    ),
    whole(
        "retrieval.max_expanded_nodes",
        50,
        0,
        _COUNT,
        "Nodes that a pack reaches along edges, at most.",
    ),
    choice(
        "retrieval.min_edge_confidence",
        "medium",
        ("high", "medium", "low"),
        "Edges that are less certain than this are not followed.",
    ),
    flag("retrieval.include_narrative", True, "Whether a pack includes narrative."),
    whole("retrieval.narrative_days", 7, 0, _DAYS, "How many days of the log a pack looks back."),
    # Narrative.
    flag("narrative.snapshot", True, "Whether a commit snapshots the narrative files."),
    # When a session's staging is compacted without being asked.
    whole(
        "staging.compact_tokens",
        50_000,
        0,
        _TOKENS,
        "Staging is compacted once it holds more tokens than this; 0 means never.",
    ),
    number(
        "staging.compact_hours",
        4.0,
        0,
        24.0 * 365,
        "Staging is compacted once a session lasts longer than this; 0 means never.",
    ),
    flag("staging.compact_on_task_end", True, "Whether the end of a task compacts staging."),
    flag(
        "staging.compact_on_task_switch",
        True,
        "Whether the start of another task compacts staging.",
    ),
    # What an agent is given when a session starts. The caps scale with the budget.
    whole("context.budget", 2_000, 100, _TOKENS, "Tokens that an agent is given at session start."),
    whole("context.memory_cap", 700, 0, _TOKENS, "Tokens for pinned, working and reference nodes."),
    whole("context.session_index_cap", 300, 0, _TOKENS, "Tokens for recent sessions."),
    whole("context.function_map_cap", 300, 0, _TOKENS, "Tokens for recently changed code."),
    whole("context.learnings_cap", 250, 0, _TOKENS, "Tokens for learnings."),
    whole("context.observations_cap", 300, 0, _TOKENS, "Tokens for past work."),
    whole("context.reserve", 150, 0, _TOKENS, "Tokens for the frame around the layers."),
    whole("context.max_sessions", 10, 0, 1_000, "Sessions listed, at most."),
    whole("context.max_functions", 30, 0, 1_000, "Changed functions listed, at most."),
    whole("context.max_learnings", 10, 0, 1_000, "Learnings listed, at most."),
    whole("context.max_observations", 10, 0, 1_000, "Observations listed, at most."),
    number(
        "context.min_learning_confidence",
        0.5,
        0,
        1,
        "Learnings that are less certain than this are left out.",
    ),
    whole("view.default_budget", 50_000, 100, _TOKENS, "Tokens of the view `default`."),
    # Hooks.
    number(
        "hooks.transcript_timeout_seconds",
        5.0,
        0.1,
        60,
        "How long a hook reads a transcript before it leaves the rest to the worker.",
    ),
    # What agents may do.
    flag(
        "agents.may_pin",
        False,
        "Whether commands of agents pin nodes and write for all projects at once; otherwise"
        " `ctx review` lists what they propose. Only your own file sets it.",
    ),
    # What sessions leave behind.
    flag("capture.enabled", True, "Whether what agents do is taken in."),
    texts(
        "capture.ignore_tools",
        ("Glob", "Grep", "LS", "ListMcpResourcesTool", "ToolSearch"),
        "Tools whose use is not taken in.",
    ),
    texts("capture.ignore_projects", (), "Names of projects, or folders, that are not taken in."),
    texts(
        "capture.ignore_paths",
        (),
        "Files that are never taken in, as in a `.gitignore`; `.ctxignore` files add to them.",
    ),
    whole(
        "capture.keep_days", 30, 1, _DAYS, "Days that steps are kept; what was made of them stays."
    ),
    whole("capture.max_mb", 200, 1, 1_000_000, "Megabytes of steps that are kept; the oldest go."),
    texts(
        "capture.project_names",
        (),
        "Names for folders that are to have another than their own, as `~/work/shop-2=shop`.",
    ),
    number("worker.idle_seconds", 45.0, 0, _SECONDS, "When a worker without a session goes."),
    whole("worker.memory_mb", 512, 64, 1_000_000, "A worker that takes more is replaced."),
    flag("worker.autostart", True, "Whether hooks start the worker when there is none."),
    whole("backup.keep", 7, 0, 1_000, "Daily backups of the user store that are kept."),
    # Models.
    choice(
        "llm.backend",
        "off",
        ("off", "auto", "llama_cpp", "openai", "anthropic", "claude_cli"),
        "Which model `ctx llm` asks and sessions are told by; `off`: none. `auto`: one on this"
        " machine, if there is one.",
    ),
    text(
        "llm.server_url",
        "http://127.0.0.1:8080",
        "The server that a backend talks to.",
        starts=("http://", "https://"),
    ),
    text("llm.model", "default", "The model's name, as the server knows it."),
    text(
        "llm.api_key_env",
        "",
        "The environment variable that holds that server's key, which is never stored; without a"
        " name, `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`.",
    ),
    text("llm.command", "claude", "The program of the backend `claude_cli`."),
    whole("llm.max_response_tokens", 2_048, 1, _TOKENS, "Tokens of one answer, at most."),
    number("llm.temperature", 0.2, 0, 2, "How freely a model chooses its words."),
    number(
        "llm.timeout_seconds",
        120.0,
        0.1,
        3_600,
        "How long a model may be silent before it is given up.",
    ),
    whole("llm.retries", 3, 0, 10, "How often a server is asked again that is busy or failed."),
    text(
        "llm.prompt_prefix",
        "You are a careful software engineer. Answer from the context that you are given, and say"
        " so where it does not tell.",
        "What `ctx llm` says to a model before the task.",
    ),
    text(
        "llm.prompt_instruction",
        "Answer the task. Name files and symbols as the context does. Put each decision on a line"
        " of its own that begins with `Decision:`.",
        "What `ctx llm` says to a model after the context.",
    ),
    flag("llm.synthesis", True, "Whether the configured model also tells what sessions did."),
    whole(
        "llm.daily_token_cap",
        200_000,
        0,
        1_000_000_000,
        "Tokens that models may use in a day; past it, no model is asked.",
    ),
    whole(
        "llm.session_token_cap",
        60_000,
        0,
        1_000_000_000,
        "Tokens that a model may use to tell what one session did.",
    ),
    texts(
        "llm.prices",
        (),
        "What models cost, as `claude-haiku=1.00/5.00`: dollars for a million tokens in and out."
        " `*` stands for every model.",
    )._replace(form=rf"\s*[^=\s][^=]*=\s*{_PRICE}\s*/\s*{_PRICE}\s*", example="NAME=1.00/5.00"),
    # Vectors: what a text means, beside what it says.
    flag("search.vectors", True, "Whether texts are also found by what they mean."),
    choice(
        "search.embedder",
        "static",
        ("static", "openai"),
        "What makes vectors: the table that comes with ctx, or a server that speaks the protocol"
        " of OpenAI, to which texts are sent.",
    ),
    text(
        "search.url",
        "http://127.0.0.1:8080/v1",
        "The server that makes vectors.",
        starts=("http://", "https://"),
    ),
    text("search.model", "default", "The model's name, as that server knows it."),
    text(
        "search.api_key_env",
        "OPENAI_API_KEY",
        "The environment variable that holds that server's key; the key itself is never stored.",
    ),
    # What other people see.
    choice(
        "share.sessions",
        "none",
        ("none", "summary", "all"),
        "What of captured sessions enters the project store, and so git.",
    ),
    # Garbage collection.
    whole("gc.keep_days", 7, 0, _DAYS, "Days that objects to which nothing refers are kept."),
    whole(
        "gc.tracked_keep_days",
        90,
        0,
        _DAYS,
        "Days that such objects are kept in the project store: another branch may need them.",
    ),
)

SETTINGS = {setting.name: setting for setting in _TABLE}
SECTIONS = tuple(dict.fromkeys(setting.section for setting in _TABLE))


def find(name: str) -> Setting | None:
    return SETTINGS.get(RENAMED.get(name, name))


def named(name: str) -> Setting:
    """The setting that a person named."""
    setting = find(name)
    if setting is None:
        near = nearest(name, SETTINGS)
        raise UsageError(
            f"There is no setting `{name}`.",
            hint=f"Did you mean `{near}`?" if near else "`ctx config list` lists what there is.",
        )
    return setting


def for_variable(variable: str) -> Setting | None:
    if variable in VARIABLES:
        return SETTINGS[VARIABLES[variable]]
    section, _, key = variable.removeprefix("CTX_").lower().partition("_")
    # Upper case only: anything else is somebody else's variable.
    return find(f"{section}.{key}") if variable.isupper() else None


def variables(setting: Setting) -> tuple[str, ...]:
    """The environment variables that set it, the one that wins first."""
    if setting.section in USER_FILE_SECTIONS:
        return ()
    others = (variable for variable, name in VARIABLES.items() if name == setting.name)
    return setting.variable, *others


def nearest_variable(variable: str) -> str | None:
    """Strict, for ctx is not the only program whose variables may begin with `CTX_`."""
    return nearest(variable, [*VARIABLES, *(s.variable for s in _TABLE)], cutoff=0.85)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The right name for one that is nearly right."""
    import difflib

    found = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return found[0] if found else None
