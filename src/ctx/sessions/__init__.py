"""Sessions: a stretch of an agent's work, from its first event to the commit that keeps it.

    spool, live, hook_log   what hooks leave behind, in small files
    events, bodies          what a hook reported, as it is kept until a step is made of it
    capture, policy, steps  the step that it becomes, and what is left out; command_steps, shell,
                            writes, symbols, secret_files: how each kind of event is read
    private, injected       what is nobody's business, and what ctx itself gave to an agent
    pausing                 where and when nothing is taken in
    state, deleted          what is known of a session, and which ones somebody has deleted
    transcript              what the agent said, as its client wrote it down; transcript_events,
                            transcript_files: what happened in a session, by the same files
    synthesis               what a session leaves behind, made of its steps
    learnings, meaning      what several sessions have shown, and whether two sentences say the same
    commands, markup, prose what it asked of memory in its own words
    project_memory          what is known in a project: committed, staged, and in documents
    documents, anchors      what documents say, and what stands in the graph for a thing in the code
    staging, chains         a session's work in a project; joining, waiting, mending: its life
    compaction              the commit that it becomes; changelog, relations: what that tells
    past                    the memory of a commit, as it was
    trust, trust_check,
    repository_identity     whose store is trusted, and whether it is still the same repository
    beside                  what an agent is given of a project's store
    exactly_once            a command's change to a project, done once

Capture never reads memory: what is remembered is asked for by nothing that takes in events.
"""
