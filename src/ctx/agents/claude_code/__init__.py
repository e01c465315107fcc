"""Claude Code: its hooks, settings, skills and plugins.

    entry, hooks, adapter, payloads, tools, transcripts
                       as in every agent
    session_lineage    which session continues which
    transcript_events  reads events from a transcript

    clients            installed clients, their versions, and the events that they know
    registration       which hooks are registered, and their command lines
    install            installs and uninstalls all of this
    plugin             the same as a plugin
    settings           the state that the doctor checks
    doctor             checks whether everything works

The client's files belong to the user: everything that ctx writes there is recognizable and can be
removed without a trace. Every hook loads this file, so it contains no code.
"""
