"""The script that a hook of Gemini CLI runs: `PYTHON -I -S …/entry.py session-start`.

An isolated interpreter sees only the standard library, so that nothing in a project or an
environment can interfere. This file is compiled at each start; its imports are not.
"""

import sys

sys.path.append(__file__[: -len("/ctx/agents/gemini/entry.py")])

from ctx.agents.gemini.hooks import HOOKS
from ctx.agents.runtime.hook import main

main(sys.argv[1:], HOOKS)
