"""How many planted faults the tests find.

A *fault* is a small change of one statement that would hurt somebody: a comparison turned round, a
lock not taken. `kinds` names them, `planted` draws them and plants them, and `suite` runs the tests
on a copy of the tree that has one of them.
"""
