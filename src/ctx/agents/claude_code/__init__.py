"""Claude Code: its hooks, its settings, its skills and plugins.

    entry          the script that is registered: it starts a hook of `runtime`
    lineage        which session goes on from which

    adapter            the host as the registry loads it
    payloads           what it passes to hooks, as events
    tools              what its tools are called for
    file_edits         a file before and after it was written
    transcript_files   where transcripts lie, and whose they are
    transcript_events  what happened, out of a transcript
    transcript_turns   what was said, out of a transcript
    transcript_texts   what the agent read, out of a transcript

    clients        which clients are installed, and their versions
    registration   which hooks are registered for them, as what command lines
    jsonc          JSON with comments, and where everything in it stands
    splice         putting an element into such a text, and taking it out
    settings_file  settings.json, changed without touching anything but our hooks
    foreign_file   a file of another program, replaced where it lies
    child          a program that is run to see what it says
    install        setting all of it up, and taking it out again
    skill          the pages that tell Claude how to use its memory
    plugin         the same as a plugin
    projection     a block in AGENTS.md, for agents that have no hooks
    events         which events a client knows, by its version
    setup          what the doctor looks at
    hook_checks    what the doctor says about hooks
    doctor         whether all of it works

The client's files are their owner's: what is put there can be told from everything else, and is
taken out again without a trace. What events mean for memory is said by `operations`. Hooks load
this file, so it holds nothing.
"""
