"""Synthesis by a model, in addition to the synthesis without one.

    questions       builds the questions: about the excerpts of a session, all of it, or a repair
    parse_answer    parses a model's answer
    model_answers   reads and writes the table of answers
    merge_answers   merges answers into the synthesis that was made without a model

The size of each question has an upper limit, however long the session is, and asking twice does no
harm. Nothing here calls a model; `operations/model_questions.py` does.

A model's answer is untrusted text. It must have a strict form, is cut to the usual lengths, and can
only name excerpts and statements that were in the question. What the user said stays, in the
user's words.
"""
