"""The table of all settings: name, default, bounds and a one-sentence description."""

from collections.abc import Iterable

from ctx.config.setting import Setting, variable_of
from ctx.errors import UsageError

# Sections that a project file may set. The file comes with a clone and is not trusted.
PROJECT_SECTIONS = frozenset(
    {"repo", "storage", "index", "ingestion", "retrieval", "narrative", "staging"}
)

# Sections about one project. In a user file they would give every project the same name.
PROJECT_ONLY_SECTIONS = frozenset({"repo"})

# Sections that only the user file may set. A project can set environment variables for the programs
# that an agent runs, including hooks.
USER_FILE_SECTIONS = frozenset({"agents"})

# Old names: accepted wherever a setting is named, never written.
RENAMED = {"retrieval.max_depth": "retrieval.default_depth"}

# Variables that do not follow the pattern CTX_SECTION_KEY. If both are set, the pattern wins.
VARIABLES = {
    "CTX_DEFAULT_BUDGET": "view.default_budget",
    "CTX_TRANSCRIPT_TIMEOUT": "hooks.transcript_timeout_seconds",
}

_TOKENS = 10_000_000
_COUNT = 1_000_000
# The maximum size of an object.
_LARGEST_FILE = 256 * 1024 * 1024
_BYTES = 1 << 40
_DAYS = 36_500
_SECONDS = 3_600
_PRICE = r"[0-9]{1,6}(?:\.[0-9]*)?"


def flag(name: str, default: bool, doc: str) -> Setting:
    return Setting(name, "flag", default, doc)


def whole_number(name: str, default: int, low: int, high: int, doc: str) -> Setting:
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
"""The edge types that a pack follows by default."""

_TABLE = (
    # The project itself.
    text("repo.id", "", "The project's name. Default: the name of its folder."),
    text("repo.ctx_version", "", "The version of ctx that created the project store."),
    # Objects on disk.
    whole_number("storage.compression_level", 3, 0, 22, "The zstd compression level of objects."),
    whole_number(
        "storage.shard_prefix_bytes", 1, 1, 1, "Bytes of an object id that form its folder name."
    ),
    # The index.
    choice("index.backend", "sqlite", ("sqlite",), "The database that holds the index.")._replace(
        older=("redb",), instead="SQLite is used instead"
    ),
    flag(
        "index.enable_tantivy",
        False,
        "Accepted from old files. Full-text search always uses SQLite.",
    )._replace(older=(True,), instead="SQLite full-text search is always on"),
    # What enters the store.
    texts(
        "ingestion.ignore_globs",
        ("target/**", ".git/**", "node_modules/**"),
        "Files to ignore, in addition to those that git ignores.",
    ),
    whole_number(
        "ingestion.max_file_bytes",
        10 * 1024 * 1024,
        1,
        _LARGEST_FILE,
        "The largest file that `ctx add file` accepts, in bytes.",
    ),
    whole_number(
        "ingestion.max_files_per_step",
        10,
        1,
        _COUNT,
        "The most files that capture and the Python library store per step.",
    ),
    whole_number(
        "ingestion.max_bytes_per_step",
        1_048_576,
        1,
        _BYTES,
        "The most bytes that capture and the Python library store per step.",
    ),
    whole_number(
        "ingestion.max_log_lines",
        500,
        0,
        _COUNT,
        "Lines of command output that capture stores.",
    ),
    whole_number(
        "ingestion.max_edges_per_step",
        100,
        0,
        _COUNT,
        "The most edges that capture or `ctx add file --extract-semantics` stores per step.",
    ),
    # Packs.
    whole_number("retrieval.default_budget", 16_000, 100, _TOKENS, "Token budget of a pack."),
    whole_number(
        "retrieval.reserved_for_response",
        0,
        0,
        _TOKENS,
        "Tokens of a pack's budget reserved for the answer.",
    ),
    whole_number(
        "retrieval.default_depth", 2, 0, 10, "How many edges a pack follows from its seeds."
    ),
    texts(
        "retrieval.expand_labels",
        EXPAND_LABELS,
        "Edge types that a pack follows.",
    ),
    whole_number(
        "retrieval.max_expanded_nodes",
        50,
        0,
        _COUNT,
        "The most nodes that a pack adds by following edges.",
    ),
    choice(
        "retrieval.min_edge_confidence",
        "medium",
        ("high", "medium", "low"),
        "The lowest edge confidence that a pack follows.",
    ),
    flag("retrieval.include_narrative", True, "Include narrative documents in packs."),
    whole_number(
        "retrieval.narrative_days", 7, 0, _DAYS, "Days of log entries that a pack considers."
    ),
    # The context at session start.
    whole_number(
        "context.budget", 2_000, 100, _TOKENS, "Tokens at session start, besides pinned nodes."
    ),
    whole_number(
        "context.prompt_budget",
        700,
        0,
        _TOKENS,
        "Tokens for what earlier sessions said about the first prompt of a session; 0: nothing.",
    ),
    whole_number(
        "view.default_budget", 50_000, 100, _TOKENS, "Token budget of the view `default`."
    ),
    # Hooks.
    number(
        "hooks.transcript_timeout_seconds",
        5.0,
        0.1,
        60,
        "Seconds that a hook reads a transcript before it leaves the rest to the worker.",
    ),
    # Agents' permissions.
    flag(
        "agents.may_pin",
        False,
        "Let agents pin nodes and write to all projects without review. Otherwise `ctx review`"
        " lists their proposals. Only your user file can set this.",
    ),
    # Capture.
    flag("capture.enabled", True, "Capture what agents do."),
    texts(
        "capture.ignore_tools",
        ("Glob", "Grep", "LS", "ListMcpResourcesTool", "ToolSearch"),
        "Tools whose calls are not captured.",
    ),
    texts("capture.ignore_projects", (), "Projects, by name or folder, that are not captured."),
    texts(
        "capture.ignore_paths",
        (),
        "Files that are never captured, as `.gitignore` patterns; `.ctxignore` files add more.",
    ),
    whole_number(
        "capture.keep_days",
        30,
        1,
        _DAYS,
        "Days to keep captured steps. Observations made from them stay.",
    ),
    whole_number(
        "capture.max_mb",
        200,
        1,
        1_000_000,
        "Megabytes of captured steps to keep; the oldest are deleted first.",
    ),
    texts(
        "capture.project_names",
        (),
        "Project names for folders, as `~/work/shop-2=shop`.",
    ),
    number(
        "worker.idle_seconds",
        45.0,
        0,
        _SECONDS,
        "Seconds without a live session after which the worker exits.",
    ),
    flag("worker.autostart", True, "Let hooks start the worker."),
    whole_number("backup.keep", 7, 0, 1_000, "Daily backups of the user store to keep."),
    # Models.
    choice(
        "llm.backend",
        "off",
        ("off", "auto", "llama_cpp", "openai", "anthropic", "claude_cli"),
        "The model backend for `ctx llm` and for sessions. `off`: none. `auto`: a model on this"
        " machine, if one is running.",
    ),
    text(
        "llm.server_url",
        "http://127.0.0.1:8080",
        "The URL of the model server.",
        starts=("http://", "https://"),
    ),
    text("llm.model", "default", "The model's name on the server."),
    text(
        "llm.api_key_env",
        "",
        "The environment variable that holds the API key, which is never stored. Default:"
        " `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`.",
    ),
    text("llm.command", "claude", "The program that the backend `claude_cli` runs."),
    whole_number("llm.max_response_tokens", 2_048, 1, _TOKENS, "The most tokens in one answer."),
    number("llm.temperature", 0.2, 0, 2, "The sampling temperature."),
    number(
        "llm.timeout_seconds",
        120.0,
        0.1,
        3_600,
        "Seconds without output after which a request fails.",
    ),
    flag(
        "llm.synthesis",
        True,
        "Let the configured model summarise sessions and choose what to keep of them.",
    ),
    flag(
        "llm.rerank",
        False,
        "Let the configured model order what earlier sessions said about a first prompt. The prompt"
        " waits for it for up to a second.",
    ),
    whole_number(
        "llm.daily_token_cap",
        200_000,
        0,
        1_000_000_000,
        "The most tokens that models may use per day.",
    ),
    whole_number(
        "llm.session_token_cap",
        60_000,
        0,
        1_000_000_000,
        "The most tokens that a model may use for one session.",
    ),
    texts(
        "llm.prices",
        (),
        "Model prices, as `claude-haiku=1.00/5.00`: dollars per million input and output tokens."
        " `*` matches every model.",
    )._replace(form=rf"\s*[^=\s][^=]*=\s*{_PRICE}\s*/\s*{_PRICE}\s*", example="NAME=1.00/5.00"),
    # Vector search.
    flag("search.vectors", True, "Search by meaning too, with vectors."),
    choice(
        "search.embedder",
        "static",
        ("static", "openai"),
        "What computes vectors: the table that comes with ctx, or a server with an"
        " OpenAI-compatible API, which receives the texts.",
    ),
    text(
        "search.url",
        "http://127.0.0.1:8080/v1",
        "The URL of the embedding server.",
        starts=("http://", "https://"),
    ),
    text("search.model", "default", "The embedding model's name on that server."),
    text(
        "search.api_key_env",
        "OPENAI_API_KEY",
        "The environment variable that holds the API key, which is never stored.",
    ),
    # Sharing.
    choice(
        "share.sessions",
        "none",
        ("none", "summary", "all"),
        "What captured sessions add to the project store, and so to git.",
    ),
    # Other machines.
    text(
        "sync.every",
        "never",
        "How often the worker syncs with the targets of `ctx sync`: `10m`, `1h`, or `never`.",
    )._replace(form=r"never|[1-9][0-9]{0,5}[smhd]", example="10m"),
    # Garbage collection.
    whole_number("gc.keep_days", 7, 0, _DAYS, "Days to keep unreferenced objects."),
)

SETTINGS = {setting.name: setting for setting in _TABLE}

WITHOUT_EFFECT = (
    "context.commands_cap",
    "context.function_map_cap",
    "context.learnings_cap",
    "context.max_commands",
    "context.max_functions",
    "context.max_learnings",
    "context.max_observations",
    "context.max_sessions",
    "context.memory_cap",
    "context.min_learning_confidence",
    "context.observations_cap",
    "context.prompt_ms",
    "context.reserve",
    "context.rules_cap",
    "context.session_index_cap",
    "context.standing_cap",
    "context.worker_timeout_s",
    "gc.tracked_keep_days",
    "llm.prompt_instruction",
    "llm.prompt_prefix",
    "llm.retries",
    "narrative.snapshot",
    "staging.compact_hours",
    "staging.compact_on_task_end",
    "staging.compact_on_task_switch",
    "staging.compact_tokens",
    "storage.lock_timeout_seconds",
    "worker.memory_mb",
)
"""Accepted in files and variables, because old ones have them. `context.worker_timeout_s` was never
needed: the start of a session does not wait for the worker."""

SECTIONS = tuple(dict.fromkeys(name.partition(".")[0] for name in (*SETTINGS, *WITHOUT_EFFECT)))


def find(name: str) -> Setting | None:
    return SETTINGS.get(RENAMED.get(name, name))


def setting_named(name: str) -> Setting:
    """The setting with this name, or a usage error with the nearest name."""
    if name in WITHOUT_EFFECT:
        raise UsageError(f"{name} has no effect.", hint="Remove it from files that still set it.")
    setting = find(name)
    if setting is None:
        near = nearest(name, SETTINGS)
        raise UsageError(
            f"There is no setting `{name}`.",
            hint=f"Did you mean `{near}`?" if near else "`ctx config list` lists all settings.",
        )
    return setting


def for_variable(variable: str) -> Setting | None:
    if variable in VARIABLES:
        return SETTINGS[VARIABLES[variable]]
    section, _, key = variable.removeprefix("CTX_").lower().partition("_")
    # Upper case only: other variables do not belong to ctx.
    return find(f"{section}.{key}") if variable.isupper() else None


def is_without_effect(variable: str) -> bool:
    return variable in map(variable_of, WITHOUT_EFFECT)


def variables(setting: Setting) -> tuple[str, ...]:
    """The environment variables for a setting, highest precedence first."""
    if setting.section in USER_FILE_SECTIONS:
        return ()
    others = (variable for variable, name in VARIABLES.items() if name == setting.name)
    return setting.variable, *others


def nearest_variable(variable: str) -> str | None:
    """The closest known variable. Strict: other programs also use the prefix `CTX_`."""
    return nearest(variable, [*VARIABLES, *(s.variable for s in _TABLE)], cutoff=0.85)


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The closest known name."""
    import difflib

    found = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return found[0] if found else None
