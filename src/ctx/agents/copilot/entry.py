"""The script that a hook of Copilot CLI runs: `PYTHON -I -S …/entry.py session-start`.

An isolated interpreter sees only the standard library, so that nothing in a project or an
environment can interfere. This file is compiled at each start; its imports are not.
"""

import sys

sys.path.append(__file__[: -len("/ctx/agents/copilot/entry.py")])

from ctx.agents.copilot.hooks import HOOKS
from ctx.agents.runtime.hook import main

main(sys.argv[1:], HOOKS)
