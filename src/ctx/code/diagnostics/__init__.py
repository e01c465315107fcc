"""What compilers, linters and tests said, read out of what they printed.

An output is text that somebody kept: perhaps cut in the middle, perhaps of several tools one after
the other, perhaps of none that is known here. So nothing in this package fails. `read.read` goes
through the lines once; at each of them the first reader that knows what begins there takes as many
lines as belong to it, and the others never see those. A line is looked at by few expressions, each
of which takes time in proportion to the line.

How a run ended is what the tools themselves say last, not what their lines look like.

This package knows text alone: not which of the paths it finds exist, nor what becomes of them.
"""
