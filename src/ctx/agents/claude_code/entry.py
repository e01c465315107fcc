"""The script that `ctx install` registers: `PYTHON -I -S …/entry.py session-start`.

An isolated interpreter knows the standard library alone, so that nothing in a project or an
environment can get between. This file is compiled at each start; what it imports is not.
"""

import sys

sys.path.append(__file__[: -len("/ctx/agents/claude_code/entry.py")])

from ctx.agents.claude_code.claude_hooks import ClaudeHooks
from ctx.agents.runtime.hook import main

main(sys.argv[1:], ClaudeHooks())
