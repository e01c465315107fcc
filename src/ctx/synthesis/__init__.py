"""Synthesis: what a session leaves behind, made of its steps.

    observations    what comes out: observations, and the session summary
    sentences       what was said, as sentences without markdown, code and quotations
    wording         how things are said in one line: lists, names, what is too long
    course          who said what, what was asked for, and what was edited when
    junk            what is not worth keeping, and what was said already
    cues            the words by which a decision or something found out is known
    shell_edits     commands that change files
    checks          commands that say whether all is well, and which of them ask the same
    options         of such a command, what says what it looks at, and what does not matter
    complaints      what such commands complained about, and when that was gone
    settling        which edits have settled a complaint, and whether that was a bug
    fixes           failure, edit, success: a bug fix; and what passes again by itself
    vain            what was tried and did not help
    decisions       what a person or the agent settled
    proposals       what the agent proposed, and which of it a person took
    discoveries     what the agent found out
    items           what became of the items of code, from the first edit to the last
    changes         features and refactorings
    closing         what the agent said at the end: what was done, what remains
    asked           what was asked for, in one line
    summary         the session in eight sections
    unwanted        what a person has deleted, and is not told again
    synthesise      all of it together
    by_model/       the same in the words of a model, where one is configured; prompts/: what it
                    is asked
    writing         all of it as nodes of the graph; previous: what memory has of it already
    learnings       what several sessions have shown; meaning: whether two sentences say the same

But for `writing` and `previous`, everything here is a function of values and knows no store: the
same steps give the same memory.
What comes out says what was done; it is never a copy of what was printed. Texts come from
strangers: everything is cut to a length before anything looks at it, and no pattern takes more
than linear time.
"""
