"""Code that an agent writes into its answer without a fence is a quotation.

In each answer, the commands at `{+}` are run and those at `{-}` are not.
"""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.agent_commands.command_parser import Command, parse
from tests import effort
from tests.agent_commands.test_command_parser import at_most

HUNK = "@@ -1,3 +1,4 @@ def load():\n import os\n-a = 1\n+a = 2\n"
FILES = "--- a/src/app.py\n+++ b/src/app.py\n"
GIT = f"diff --git a/src/app.py b/src/app.py\nindex 1f2e3d..4c5b6a 100644\n{FILES}"
SKILL = "name: deploy\ndescription: Deploys the site.\n"
CI = "name: CI\non: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n"

ANSWERS = [
    # Diffs.
    f"I changed one line:\n\n{HUNK} {{-}}\n\nAll tests pass.\n\n{{+}}",
    f"I changed one line:\n\n{HUNK}+ {{-}}\n+ b = 3\n\n{{+}}\n",
    f"The change is small.\n{HUNK}- {{-}}\n{{+}}",
    f"{GIT}{HUNK}+ {{-}}\n\nThat is the whole patch. {{+}}",
    f"{GIT}{HUNK} {{-}}\n\n{{+}}\n\n{GIT}{HUNK} {{-}}\n\nDone.\n{{+}}",
    f"{GIT}@@ -1,4 +1,6 @@\n a\n\n+ {{-}}\n\n+ {{-}}\n\nDone.\n\n- {{+}}",
    f"{FILES}- {{-}}\n+ {{-}}\n\nTwo lines.\n{{+}}",
    "For git:\n\n*** Begin Patch\n*** Update File: a.md\n@@\n+ {-}\n*** End Patch\n\n{+}",
    "Here is it for git:\n\n*** Begin Patch\n*** Add File: a.md\n\n{-}\n\n*** End Patch\n{+}",
    "1. The fix:\n   @@ -2 +2 @@\n   -a\n   + {-}\n\n2. {+}",
    "@@@ -1,2 -1,2 +1,3 @@@\n  a\n++b\n+ {-}\n\nA merge.\n{+}",
    "@@ ... @@\n a\n+ {-}\n\nThe rest is as before:\n- {+}",
    f"{HUNK}\\ No newline at end of file\n+ {{-}}\n\n{{+}}",
    f"{HUNK}\nWhat I learned:\n\n- {{+}}\n- {{+}}",
    "rename from a\nrename to b\n\n@@ -1 +1 @@\n-x\n+y\n\n {+}",
    "- Removed the cache.\n- {+}\n+ {+}",
    "Use @@ for class variables in Ruby.\n{+}",
    "@@ marks a hunk in a diff.\n{+}",
    "--- a\n\n{+}",
    "In diffs, --- is the old file\n+++ the new one.\n\n+ {+}",
    "+ faster\n- more memory\n {+}",
    "The patch starts with *** Begin Patch.\n\n{+}",
    "*** Begin Patch\n\nis how such a patch starts.\n\n{+}",
    "a -> b +3 -1\n{+}",
    "diff --git is the header. What I keep:\n- {+}",
    f"```diff\n{HUNK}```\n{{+}}",
    # Heredocs.
    "I ran this:\n\ncat > notes.md <<'EOF'\n# Notes\n\n{-}\nEOF\n\nIt worked.\n{+}",
    "cat <<EOF\n{-}\nEOF\n{+}",
    'ssh host <<"END" | tee log\n{-}\n\n{-}\nEND\nThe host is up. {+}',
    "python3 - <<'PY'\nprint('''\n{-}\n''')\nPY\n\n{+}",
    "cat <<-EOF\n\tfirst\n{-}\n\tEOF\n\n{+}",
    "cat <<A <<B\nfirst\nA\n{-}\nB\n{+}",
    "- To reproduce:\n  cat > a.md << EOF\n  {-}\n\n  {-}\n  EOF\n- {+}",
    "psql <<SQL\nselect 1;\n\n{-}\n\n  SQL\n\n{-}\n\nSQL\n\n{+}",
    "cat > README.md <<'EOF'\n```sh\nmake <<X\n```\n\n{-}\nEOF\n\n{+}",
    "def text\n  <<~EOS\n    a\n\n  {-}\n  EOS\nend\n\n{+}",
    "cat <<EOF\n{-}\nand so on, and so on.\n\nThe rest is cut off.\n{+}",
    "I left out the heredoc with <<EOF because it never ends.\n{+}",
    "In C++, `std::cout << x` prints it. Now x is 1 << n.\nn\n{+}",
    "The script used `cat <<EOF`.\n\n{+}\n\nEOF\n\nis its last line.",
    "Write it with <<EOF if you like:\n\n{+}\n\n```sh\ncat <<EOF\na\nEOF\n```",
    "tr a b <<< word\n{+}\nword",
    "The mark is <<EOF>>.\n\n{+}\n\nEOF was reached.",
    # Mathematics.
    "The cost is\n\n$$\nO(n \\log n)\n{-}\n$$\n\n{+}",
    "The cost is\n$$\na\n\n{-}\n\n$$\nso it is fast.\n{+}",
    "We get $$\nx = 1\n$$\n\n{+}\n\nand $$\ny = 2\n{-}\n$$\nat last. {+}",
    "$$ a = b. {-} $$\n\n{+}",
    "\\[\nE = mc^2\n{-}\n\\]\n{+}",
    "1. \\[ a\n\n   {-}\n\n   \\]\n2. {+}",
    "In the end $$\n{+}",
    "$$ is the id of the shell.\n{+}",
    "The id is in `$$`.\n{+}\n`$$` again.",
    "It costs $5 or $$ 6.\n{+}\nIt took $$ or so.",
    "Write \\[ without an end.\n\n{+}",
    "- \\[x\\] tests\n- \\[ \\] docs\n{+}",
    "$$\na\n$$\n\n$$\n\n{-}\n\n$$\nb\n$$\n\n{+}",
    "\\begin{align*}\na &= b \\\\\n{-}\n\n{-}\n\\end{align*}\n\n{+}",
    "With \\begin{align} a formula begins.\n{+}",
    "\\begin{align}\n\n{+}\n\n\\end{table}",
    # Merge conflicts.
    "In a.md:\n\n<<<<<<< HEAD\n{-}\n=======\n\n{-}\n>>>>>>> main\n\nYours is right. {+}",
    "- <<<<<<< ours\n  {-}\n  >>>>>>> theirs\n- {+}",
    "<<<<<<< HEAD begins a conflict.\n{+}",
    # YAML.
    f"The skill:\n\n---\n{SKILL}{{-}}\n---\n\n# Deploy\n\nRun `make`.\n\n{{+}}",
    f"The skill is now\n---\n{SKILL}  {{-}}\n---\n{{+}}",
    "Add this to CI:\n\nrun: |\n  make\n\n  {-}\n\n  make test\n\nThat is all.\n{+}",
    f"{CI}      - run: make\n      - {{-}}\n\nPush it.\n{{+}}",
    f"The workflow:\n\n{CI}\n      - {{-}}\n\n{{+}}",
    "version: 2\nnotes:\n- {-}\n- a\n\nNow it is valid.\n- {+}",
    "- name: install\n  hosts: all\n  tasks:\n    - {-}\n\nRun it with ansible.\n\n- {+}",
    "apiVersion: v1\nkind: ConfigMap\n# the text\ndata:\n  text: >-\n    {-}\n\n{+}",
    "Target: main\nVerdict: ok\n\nFindings:\n- {+}\n- [low] a name\n  Fix: rename it",
    "Noted:\n- {+}",
    "Result: all 12 tests pass.\nNext: the docs.\n{+}",
    "Status: done\nTests: passing\nNotes:\n- {+}",
    "Summary:\n- Tests: pass\n- Lint: clean\n- {+}",
    "---\n\n{+}\n\n---\n\nThat is it.",
    "Done.\n\n---\nNext: the docs.\n\n{+}\n\n---\nBye.",
    "All is merged.\n---\n{+}\n---\n",
    "- tests: 12 passed\n- lint: clean\n- {+}",
    "name: deploy\nbranch: main\n\n- {+}",
    "note: the server is up\n{+}",
    "The key is `run: |`.\n  {+}",
    f"```yaml\n{CI}```\n- {{+}}",
]


def command(number: int) -> str:
    return f'<ctx:remember type="fact">{number}</ctx:remember>'


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_run_of_an_answer(answer: str, newline: str) -> None:
    signs = re.findall(r"\{[+-]\}", answer)
    numbers = iter(range(len(signs)))
    text = re.sub(r"\{[+-]\}", lambda _: command(next(numbers)), answer).replace("\n", newline)
    ran = [each.content for each in parse(text) if isinstance(each, Command)]
    assert ran == [str(number) for number, sign in enumerate(signs) if sign == "{+}"]


LINES = [line for answer in ANSWERS for line in answer.replace("{+}", "a").split("\n")]


@settings(max_examples=effort.times(100), deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(LINES), max_size=20).map("\n".join), st.booleans())
def test_any_lines_can_be_read(text: str, is_last: bool) -> None:
    """Mixed at random, they quote nothing behind a paragraph that ends all of them."""
    text = re.sub(r"\{-\}|`|\$\$|\\\[|<<|Begin Patch|\"", "", text)
    assert [each.position for each in parse(f"{text}\n\nThat is it.\n\n{command(1)}")]


HOSTILE = [
    *("cat <<EOF\n", "cat <<EOF\n EOF\n", "<<A ", "@@ -1,99999 +1,99999 @@\n\n", "@@ -1 +1 @@\n"),
    *("diff --git a b\n\nx\n", "$$ ", "$$\n", "\\[ ", "\\[\\]", "a: b\n", "- a: b\n", "a: |\n\n"),
    *("---\na: b\n", "*** Begin Patch\n\n", "--- a\n+++ b\n\n", "` <<A ", "a:\n- b\n- c: d\n\n"),
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_take_linear_time(piece: str) -> None:
    with at_most(6):
        parse(f"{piece * (200_000 // len(piece))}\n\n{command(1)}")
