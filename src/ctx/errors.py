"""Everything that can go wrong and that a person can do something about.

    CtxError
    ├── ObjectNotFound         E001  a referenced object does not exist
    ├── HashMismatch           E002  an object's content does not match its id
    ├── InvalidEnvelope        E003  the stored form of an object cannot be read
    ├── DeserializationFailed  E004  a typed object, a ref or a head name cannot be understood
    ├── RefNotFound            E005  a ref does not exist
    ├── LockConflict           E006  another process holds the lock
    ├── IndexCorrupt           E007  a derived file is damaged and must be rebuilt
    ├── StagingConflict        E008  a ref moved under our feet
    ├── CommitOrphan           E009  a commit's parent is not here although it should be
    ├── BudgetExceeded         E010  an operation exceeds a configured budget
    ├── UsageError             E011  the command line makes no sense (exit code 2)
    ├── NotAProject            E012  no project store here
    ├── ConfigInvalid          E013  a configuration value cannot be used
    ├── DiskFailure            E014  the file system refused: full, read-only, not permitted
    ├── PathRefused            E015  a path is outside the project, missing, or not a plain file
    ├── GitFailure             E016  git is missing or refused
    ├── ConfirmationNeeded     E017  a destructive step was not confirmed
    ├── DatabaseFailure        E018  a database of truth is damaged, busy or of another program
    ├── NewerFormat            E019  written by a newer ctx than this one
    ├── NodeNotFound           E020  no node has this id
    ├── AmbiguousId            E021  several nodes begin with these characters
    ├── QueryInvalid           E022  a query makes no sense (exit code 2)
    ├── ContentRefused         E023  a text cannot be kept: empty, not text, too large
    ├── ImportConflict         E024  what is imported contradicts what is here
    ├── ViewNotFound           E025  no view has this name
    ├── HookFailed             E026  a hook that was to be registered does not work
    ├── SettingsUnreadable     E027  another program's settings cannot be changed safely
    ├── ReceiptNotFound        E028  no receipt has this id
    ├── ProgramFailure         E029  a program that was to be asked is missing or refused
    ├── SessionNotFound        E030  no session has that id
    ├── ModelFailure           E031  a model cannot be reached, refuses, or answers nonsense
    ├── StoreNotTrusted        E032  a project store that is not trusted was to be read
    └── StoreTooLarge          E033  a project store that is not trusted has too much in it

Each class carries its code and its exit code; each instance carries one sentence and, where
there are any, lines of detail (candidates, the place in a query) and the next step as a hint.
`cli/main.py` is the only place that prints them.
"""

EXIT_CODES = {
    0: "done; what the command changes is stored",
    1: "failed, or you said no to a question",
    2: "invalid arguments",
    130: "interrupted by Ctrl-C (SIGINT) before anything was stored",
    143: "ended by SIGTERM before anything was stored",
}


class CtxError(Exception):
    """The base of the tree: catching it catches everything ctx means to say."""

    code: str = "E000"
    exit_code: int = 1
    default_hint: str | None = None
    quotes_store: bool = False
    """Whether its sentence names what lies in a project store: files, refs, ids."""

    def __init__(self, message: str, *, hint: str | None = None, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint if hint is not None else self.default_hint

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def unquoted(self) -> "StoreNotTrusted":
        """The same about a store that is not trusted, without anything that lies in it."""
        return StoreNotTrusted(
            f"The project's store is not trusted, and cannot be used as it is ({self.code}).",
            hint="`ctx debug verify` counts what is damaged; --untrusted names it on a terminal.",
        )


class ObjectNotFound(CtxError):
    code = "E001"
    quotes_store = True
    default_hint = "Run `ctx debug verify` to see everything that is missing."


class HashMismatch(CtxError):
    code = "E002"
    quotes_store = True
    default_hint = "Restore the file from git or a copy; `ctx debug verify` lists every damage."


class InvalidEnvelope(CtxError):
    code = "E003"
    quotes_store = True
    default_hint = "Restore the file from git or a copy; `ctx debug verify` lists every damage."


class DeserializationFailed(CtxError):
    code = "E004"
    quotes_store = True
    default_hint = "Run `ctx debug verify` to see every damage."


class RefNotFound(CtxError):
    code = "E005"
    quotes_store = True
    default_hint = "`ctx debug refs` lists what there is."


class LockConflict(CtxError):
    code = "E006"
    default_hint = "Wait for it to finish and try again."


class IndexCorrupt(CtxError):
    code = "E007"
    quotes_store = True
    default_hint = "It is derived: delete it, and the next command makes it again."


class StagingConflict(CtxError):
    code = "E008"
    default_hint = "Another process moved it first; run the command again."


class CommitOrphan(CtxError):
    code = "E009"
    quotes_store = True
    default_hint = "Fetch the missing history with git, or go on: reading stops at that boundary."


class BudgetExceeded(CtxError):
    code = "E010"


class UsageError(CtxError):
    code = "E011"
    exit_code = 2


class NotAProject(CtxError):
    code = "E012"
    default_hint = "Run `ctx init` to make one."


class ConfigInvalid(CtxError):
    code = "E013"
    default_hint = "`ctx config explain KEY` says what a key takes."


class DiskFailure(CtxError):
    code = "E014"


class PathRefused(CtxError):
    code = "E015"


class GitFailure(CtxError):
    code = "E016"


class ConfirmationNeeded(CtxError):
    code = "E017"
    default_hint = "Add --yes to go ahead without being asked."


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
    default_hint = "Give more of its characters."


class QueryInvalid(CtxError):
    code = "E022"
    exit_code = 2
    default_hint = "`ctx query --help` shows what a query may say."


class ContentRefused(CtxError):
    code = "E023"


class ImportConflict(CtxError):
    code = "E024"
    default_hint = "Nothing was changed. With --merge, what is newer wins."


class ViewNotFound(CtxError):
    code = "E025"
    default_hint = "`ctx view list` shows what there is."


class HookFailed(CtxError):
    code = "E026"
    default_hint = "`ctx doctor` says more; nothing was registered."


class SettingsUnreadable(CtxError):
    code = "E027"
    default_hint = "`ctx install --print` shows what to add by hand."


class ReceiptNotFound(CtxError):
    code = "E028"
    default_hint = "`ctx why --list` shows the last ones."


class ProgramFailure(CtxError):
    code = "E029"


class SessionNotFound(CtxError):
    code = "E030"
    default_hint = "`ctx sessions list --all` shows them."


class ModelFailure(CtxError):
    code = "E031"
    default_hint = "`ctx doctor` looks at the model; `ctx config list` shows what is set."


class StoreNotTrusted(CtxError):
    code = "E032"
    default_hint = (
        "`ctx trust` says what it holds, and trusts it. "
        "On a terminal, --untrusted shows it without trusting it."
    )


class StoreTooLarge(CtxError):
    code = "E033"
    default_hint = "If you know where it comes from: `ctx trust`."
