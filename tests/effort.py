"""The number of cases in tests that try many of them.

`make test` tries enough of them to notice that something broke. `make thorough` tries ten times as
many, and all of what is otherwise only sampled. `make quick` tries few, and leaves out what is
slow.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

EFFORT = float(os.environ.get("CTX_TEST_EFFORT", "1"))
IS_THOROUGH = EFFORT > 1
SLOW = frozenset(
    """
    agents/claude_code/test_before_edit
    agents/claude_code/test_doctor agents/claude_code/test_first_prompt
    agents/claude_code/test_hook agents/claude_code/test_hook_and_worker
    agents/claude_code/test_hook_faults agents/claude_code/test_hook_fuzz
    agents/claude_code/test_in_a_project agents/claude_code/test_samples
    capture/test_symbol_changes
    cli/test_add_cargo cli/test_completion cli/test_doctor cli/test_documents cli/test_help_topics
    cli/test_hook cli/test_import cli/test_install cli/test_install_hosts cli/test_llm
    cli/test_move cli/test_pager cli/test_query cli/test_rebuild cli/test_relate cli/test_review
    cli/test_scrub cli/test_stage cli/test_startup cli/test_store cli/test_sync cli/test_worker
    code/test_build code/test_parse_fuzz code/test_process_pool code/test_resolve_on_demand
    exchange/test_recovery exchange/test_scrub_store llm/test_llama_cpp
    mcp/test_conformance mcp/test_processes
    memory/query/test_fuzz memory/query/test_oracle
    operations/test_apply operations/test_backfill operations/test_convert_go_store
    operations/test_model_questions operations/test_stage_captured
    page/test_access page/test_accessibility page/test_attacks page/test_code page/test_commands
    page/test_graph page/test_graph_frames page/test_health page/test_node page/test_now
    page/test_openapi page/test_review page/test_search page/test_search_api page/test_sessions
    page/test_without_scripts
    sync/test_store_copy synthesis/test_synthesis_properties
    worker/test_model_thread worker/test_worker
    test_dist test_docs test_imports test_layers test_library
    test_redaction
    """.split()
)
"""The modules, beside those in `e2e`, that are about processes, damage, whole repositories or
random cases. A single heavy test elsewhere is marked `slow`, and so is what needs a PostgreSQL
server. `make check` has `test_docs` and `test_layers`."""


def times(count: int) -> int:
    """How many cases to try."""
    return max(1, round(count * EFFORT))


def every(step: int) -> int:
    """The distance between the cases of a sequence that are tried."""
    return max(1, round(step / EFFORT))


def share(cases: Sequence[T], of: int, number: int = 0) -> Sequence[T]:
    """A sample of the cases, a different one for each number; all in a thorough run."""
    return cases if IS_THOROUGH else cases[number % of :: of]


def some(cases: Sequence[T], number: int) -> Sequence[T]:
    """One of the cases, a different one for each number; all in a thorough run."""
    return cases if IS_THOROUGH else [cases[number % len(cases)]]
