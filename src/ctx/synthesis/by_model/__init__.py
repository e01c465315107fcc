"""Synthesis by a model, in addition to the synthesis without one.

    step_batches    groups steps, as a few lines each, into batches, one per question
    questions       builds the questions: about a batch, a whole session, or a repair
    parse_answer    parses a model's answer
    model_answers   reads and writes the table of answers
    merge_answers   merges answers into the synthesis that was made without a model

Questions are independent: the size of each has an upper limit, however long the session is, and
asking twice does no harm. Nothing here calls a model; `operations/model_questions.py` does.

A model's answer is untrusted text. It must have a strict form, is cut to the usual lengths, must
refer to existing steps, and counts less than what the steps show. The user's decisions keep their
own wording.
"""
