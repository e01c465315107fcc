"""The hook process. It works the same for every agent and uses only the standard library.

    hook             one run of a hook: stores the event and enforces the time limit
    host_hooks       what it knows about its host, with a default for everything
    hook_answers     the answers to hooks that need one
    session_context  the context that a session gets at start
    first_prompt     what earlier sessions said about the first prompt
    anchored_nodes   what memory knows about a file before an edit
    pending_results  results that wait for a session; each is delivered once
    hook_receipts    receipts of what sessions were given
    notices          messages to the user at session start
    run_apply        runs an agent's commands, in the worker or in a process of its own
    hook_store       the store as a hook opens it

Every hook loads this file, so it contains no code.
"""
