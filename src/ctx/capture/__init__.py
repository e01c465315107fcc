"""Capture: from what a hook reported to a step that is kept.

    pipeline                from events to steps, as rounds run it; reconcile: what transcripts add
    places                  where agents work, and what may be taken in there
    events, bodies          what a hook reported, as it is kept until a step is made of it
    capture, policy, steps  the step that it becomes, and what is left out; command_steps, shell,
                            writes, symbols, secret_files: how each kind of event is read
    private, injected       what is nobody's business, and what ctx itself gave to an agent
    left_out                what is said instead of what was left out
    pausing, switched_off   where and when nothing is taken in
    event_table,
    session_table           what is asked about events and sessions in the store
    state, deleted          what is known of a session, and which ones somebody has deleted
    transcript              what the agent said, as its client wrote it down; transcript_events,
                            transcript_files: what happened in a session, by the same files
    read_markup             the commands that an agent has read, and would only repeat

Capture never reads memory: what is remembered is asked for by nothing that takes in events. It
owns the tables `events` and `sessions`.
"""
