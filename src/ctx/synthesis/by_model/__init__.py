"""What a session did, in the words of a model, beside what synthesis finds by itself.

    stretches   which steps a model is asked about together
    showing     a step in the few lines that a model is shown of it
    questions   the questions: of a stretch of steps, of the whole session, and to mend an answer
    reading     what a model answered, as far as it has the form that was asked for
    answers     what was answered, as the store keeps it
    merging     what of it is added to what was found without a model, and what it rewords

Each question stands for itself: what it shows has an upper bound, however long the session is, and
asking twice does no harm. Nothing here asks anybody: `operations/model_questions.py` does.

What a model says is a stranger's text. It must have a strict form, is cut to the lengths that
everything has, rests on steps that are there, and has less weight than what the steps show. What a
person decided stays in their own words.
"""
