"""What hooks leave behind, in small files under `CTX_HOME`.

    spool     one file for each event that a hook reported, until it is stored
    live      which sessions go on, and small notes of a session that a hook needs again
    shown     what a session was given when it started
    hook_log  what went wrong in a hook

Hooks load all of it, and nothing more than they need: the standard library, `clock` and `disk`.
"""
