"""The doctor's checks of models: which one is configured, whether it responds, its limits."""

from collections.abc import Iterator, Mapping

from ctx.config.resolve import survey
from ctx.llm import backends, ledger
from ctx.llm.backends import BackendSurvey
from ctx.operations.store_checks import DoctorCheck, ok
from ctx.workspace import Environment

_NAMED = "To configure one: `ctx config set llm.backend NAME`"


def model(environment: Environment, variables: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """The state of the model. Checking costs nothing; if none is configured, no server is asked."""
    # A project has no say in it.
    store = environment.user_store
    config = survey(store.config_file, None, environment.variables, environment.overrides)
    found = backends.survey_backends(config, variables, store.home)
    match found.state:
        case "off":
            yield ok("model", f"off{_others(found)}")
        case "none":
            seen = f"auto: none is used, as {found.problem.rstrip('.')}{_others(found)}"
            yield DoctorCheck("model", "warning", seen, f"{_NAMED}; to turn models off, use `off`.")
        case "answers":
            yield ok("model", _model_line(found))
        case "silent":
            yield DoctorCheck("model", "problem", f"{found.backend}: {found.problem}", found.advice)


def spending(environment: Environment) -> Iterator[DoctorCheck]:
    """Whether what models use can be written down: without that, none is asked."""
    if problem := ledger.problem(environment.user_store.ledger):
        yield DoctorCheck("ledger", "problem", problem.message, problem.hint or "")


def _model_line(found: BackendSurvey) -> str:
    chosen = "auto, " if found.setting == "auto" else ""
    context = f", {found.context_tokens:,} tokens of context" if found.context_tokens else ""
    detail = f" ({found.detail})" if found.detail else ""
    return f"{chosen}{found.backend}: {found.model or 'its own'} at {found.where}{context}{detail}"


def _others(found: BackendSurvey) -> str:
    """Available models, worded so that they are not taken for the configured one."""
    if not found.others:
        return ""
    return f"; available, but not configured: {', '.join(found.others)}"
