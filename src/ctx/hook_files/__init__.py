"""Small files under `CTX_HOME` that hooks write.

    spool           one file per reported event, until it is stored
    known_tokens    what is removed from an event before
    live            live sessions, and notes that hooks leave for each other
    start_receipts  the context that a session received at its start
    anchored_files  the files that memory knows something about
    hook_log        errors in hooks

Hooks load all of it, so it imports only the standard library and `clock`.
"""
