"""Errors that a user can act on.

    CtxError
    ├── ObjectNotFound         E001  a referenced object does not exist
    ├── HashMismatch           E002  an object's content does not match its id
    ├── InvalidEnvelope        E003  the stored form of an object cannot be read
    ├── DeserializationFailed  E004  a typed object, a ref or a head name cannot be understood
    ├── RefNotFound            E005  a ref does not exist
    ├── LockConflict           E006  another process holds the lock
    ├── IndexCorrupt           E007  a derived file is damaged and must be rebuilt
    ├── StagingConflict        E008  a ref changed since it was read
    ├── CommitOrphan           E009  a parent of a commit is missing
    ├── BudgetExceeded         E010  an operation exceeds a configured budget
    ├── UsageError             E011  invalid arguments (exit code 2)
    ├── NotAProject            E012  no project store here
    ├── ConfigInvalid          E013  a configuration value is invalid
    ├── DiskFailure            E014  the file system refused: full, read-only, not permitted
    ├── PathRefused            E015  a path is outside the project, missing, or not a plain file
    ├── GitFailure             E016  git is missing or refused
    ├── ConfirmationNeeded     E017  a destructive step was not confirmed
    ├── DatabaseFailure        E018  a database is damaged, busy or belongs to another program
    ├── NewerFormat            E019  written by a newer ctx than this one
    ├── NodeNotFound           E020  no node has this id
    ├── AmbiguousId            E021  several nodes match this id prefix
    ├── QueryInvalid           E022  invalid query (exit code 2)
    ├── ContentRefused         E023  content is refused: empty, not text, or too large (exit code 2)
    ├── ImportConflict         E024  imported data conflicts with existing data
    ├── ViewNotFound           E025  no view has this name
    ├── HookFailed             E026  a hook fails its test and is not registered
    ├── SettingsUnreadable     E027  another program's settings file cannot be edited safely
    ├── ReceiptNotFound        E028  no receipt has this id
    ├── ProgramFailure         E029  an external program is missing or failed
    ├── SessionNotFound        E030  no session has that id
    ├── ModelFailure           E031  a model is unreachable, refuses, or sends an invalid answer
    ├── StoreNotTrusted        E032  a command needs a project store that is not trusted
    ├── StoreTooLarge          E033  a project store exceeds the read limits
    ├── SyncFailure            E034  a sync target is missing, unknown, or needs another key
    └── ObjectTooLarge         E035  an object is larger than any that ctx writes

Each class defines its code and exit code. Each instance has a one-sentence message and, optionally,
detail lines (candidates, the position in a query) and a hint with the next step. Only `cli/main.py`
prints them.
"""

EXIT_CODES = {
    0: "done; what the command changes is stored",
    1: "failed, or you answered no",
    2: "invalid arguments",
    130: "interrupted by Ctrl-C (SIGINT) before anything was stored",
    143: "ended by SIGTERM before anything was stored",
}


class CtxError(Exception):
    """The base class: catch it to catch every error that ctx raises on purpose."""

    code: str = "E000"
    exit_code: int = 1
    default_hint: str | None = None
    quotes_store: bool = False
    """Whether the message may contain names from a project store: files, refs, ids."""

    def __init__(self, message: str, *, hint: str | None = None, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint if hint is not None else self.default_hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def unquoted(self) -> "StoreNotTrusted":
        """The error to show for an untrusted store, without any text from that store."""
        return StoreNotTrusted(
            f"The project store is not trusted and is damaged ({self.code}).",
            hint="`ctx debug verify` counts the damage; add --untrusted on a terminal for details.",
        )


class ObjectNotFound(CtxError):
    code = "E001"
    quotes_store = True
    default_hint = "Run `ctx debug verify` to list all missing objects."


class HashMismatch(CtxError):
    code = "E002"
    quotes_store = True
    default_hint = "Restore the file from git or a backup; `ctx debug verify` lists all damage."


class InvalidEnvelope(CtxError):
    code = "E003"
    quotes_store = True
    default_hint = "Restore the file from git or a backup; `ctx debug verify` lists all damage."


class DeserializationFailed(CtxError):
    code = "E004"
    quotes_store = True
    default_hint = "Run `ctx debug verify` to list all damage."


class RefNotFound(CtxError):
    code = "E005"
    quotes_store = True
    default_hint = "`ctx debug refs` lists the refs."


class LockConflict(CtxError):
    code = "E006"
    default_hint = "Wait for it to finish and try again."


class IndexCorrupt(CtxError):
    code = "E007"
    quotes_store = True
    default_hint = "Delete it: the next command rebuilds it."


class StagingConflict(CtxError):
    code = "E008"
    default_hint = "Another process changed it first; run the command again."


class CommitOrphan(CtxError):
    code = "E009"
    quotes_store = True
    default_hint = "Fetch the missing history with git, or continue without it: history ends there."


class BudgetExceeded(CtxError):
    code = "E010"


class UsageError(CtxError):
    code = "E011"
    exit_code = 2


class NotAProject(CtxError):
    code = "E012"
    default_hint = "Run `ctx init` to create one."


class ConfigInvalid(CtxError):
    code = "E013"
    default_hint = "`ctx config explain KEY` shows the valid values."


class DiskFailure(CtxError):
    code = "E014"


class PathRefused(CtxError):
    code = "E015"


class GitFailure(CtxError):
    code = "E016"


class ConfirmationNeeded(CtxError):
    code = "E017"
    default_hint = "Add --yes to skip the question."


class DatabaseFailure(CtxError):
    code = "E018"


class NewerFormat(CtxError):
    code = "E019"
    default_hint = "Upgrade ctx to read it."


class NodeNotFound(CtxError):
    code = "E020"
    default_hint = "`ctx list` and `ctx search WORDS` show ids."


class AmbiguousId(CtxError):
    code = "E021"
    default_hint = "Use a longer prefix."


class QueryInvalid(CtxError):
    code = "E022"
    exit_code = 2
    default_hint = "`ctx query --help` shows the query syntax."


class ContentRefused(CtxError):
    code = "E023"
    exit_code = 2


class ImportConflict(CtxError):
    code = "E024"
    default_hint = "Nothing was changed. With --merge, the newer version wins."


class ViewNotFound(CtxError):
    code = "E025"
    default_hint = "`ctx view list` lists the views."


class HookFailed(CtxError):
    code = "E026"
    default_hint = "Nothing was registered. Run `ctx doctor` for details."


class SettingsUnreadable(CtxError):
    code = "E027"
    default_hint = "`ctx install --print` shows what to add by hand."


class ReceiptNotFound(CtxError):
    code = "E028"
    default_hint = "`ctx why --list` lists recent receipts."


class ProgramFailure(CtxError):
    code = "E029"


class SessionNotFound(CtxError):
    code = "E030"
    default_hint = "`ctx sessions list --all` lists all sessions."


class ModelFailure(CtxError):
    code = "E031"
    default_hint = "`ctx doctor` checks the model; `ctx config list` shows the settings."


class StoreNotTrusted(CtxError):
    code = "E032"
    default_hint = (
        "`ctx trust` shows what it contains and asks whether to trust it. "
        "On a terminal, --untrusted reads it without trusting it."
    )


class StoreTooLarge(CtxError):
    code = "E033"
    default_hint = "If you know its source, run `ctx trust`."


class SyncFailure(CtxError):
    code = "E034"
    default_hint = "`ctx sync status` shows the targets."


class ObjectTooLarge(InvalidEnvelope):
    code = "E035"
