"""Sessions: a stretch of an agent's work, from its first event to the commit that keeps it.

    spool, live, hook_log   what hooks leave behind, in small files
    events                  what a hook reported, as it is kept
    transcript              what the agent said, as its client wrote it down
    commands, markup, prose what it asked of memory in its own words
    staging, compaction     a session's work in a project, and the commit that it becomes

Capture never reads memory: nothing here asks what is remembered.
"""
