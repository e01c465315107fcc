"""Synthesis: turns the steps of a session into observations and a summary.

    observations           the results: observations and the session summary
    sentences              splits a message into sentences and passages, without markdown and code
    wording                texts in one line: lists, code names, shortening
    timeline               messages, goals and edits of a session, by step index
    dedupe                 filters noise and repeated statements, by what sentences mean
    cue_phrases            the phrases that mark a decision or a discovery
    check_commands         commands that run tests, compilers or linters, and how they overlap
    command_words          settings, program and options of a command, and the files it changes
    part_outcomes          the outcome of each part of a compound command
    project_commands       the commands that test, lint, build and start, traps, and their table
    failures               failures of checks, from the first run to the one that passes
    failure_edits          the edits that fixed a failure, and those that did not
    fixes                  bug fixes (failure, edit, success) and flaky tests
    decisions              decisions of the user or the agent
    proposals              what the agent proposed, and which option the user picked
    discoveries            what the agent found out
    net_changes            the net change of each code item over all edits
    line_changes           small changes of single lines, and their reasons
    code_changes           features and refactorings
    final_message          what the agent reports at the end: completed and remaining work
    summary                the request in one line, and the session summary in eight sections
    synthesise             runs all of the above
    by_model/              what a configured model chooses and sums up; prompts/: the prompts
    session_excerpts       what was said, cut into excerpts, with what they are worth
    pasted_text            tells what a user typed from what they pasted
    statements             the best excerpts as observations
    excerpt_table          the table of excerpts
    session_writer         writes the results as nodes
    session_stores         to which stores they are written
    author_standing        corrects nodes that rest on prompts of somebody else than the user
    provenance             what a summary and a learning rest on, as edges
    existing_observations  what memory already has about a session or a project
    learnings              what several sessions have in common

Except for `session_writer`, `session_stores`, `author_standing`, `provenance`, `project_commands`,
`excerpt_table`, `existing_observations` and `by_model.model_answers`, these modules are functions
of values and know no store: the same steps always give the same memory.
Results describe what was done; they never copy command output. Input texts are untrusted: every
text is cut to a length before it is examined, and every pattern runs in linear time.
"""
