"""Capture: turns what a hook reports into stored steps.

    pipeline                events to steps, run by the worker's rounds
    reconcile               adds what only the transcript has
    capture_places,
    capture_rules           where agents work, and what may be captured there
    event_store             an event in the store, until it becomes a step
    capture, steps          the step that an event becomes, or why it is dropped
    command_steps           how a command ended, and the message of a `git commit`
    shell_line              the parts of a command line
    written_lines           a written file inside a stored event, and the lines that changed
    symbol_changes          which items of code a write changed
    private_text            text that is never stored
    injected_text           removes what ctx itself gave to an agent
    excluded_text           whether a path, a command or a line names an ignored file
    capture_pauses,
    capture_off             where and when capture is off
    event_table,
    session_table           queries about stored events and sessions, and which were deleted
    session_state           the status of a session
    step_positions          where its steps are in its transcript
    prompt_authors          whose words a prompt is: a person's, a subagent's or a program's
    team_table              the sessions of teams of agents, and their leads
    repeated_commands       commands that an agent read and may only repeat

Capture never reads memory. It owns the tables `events`, `sessions`, `session_teams` and
`symbol_changes`.
"""
