"""Commands in a reply: which are parsed, which are reported as wrong, which are left alone."""

import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx.agent_commands.command_parser import Command, CommandProblem, parse
from ctx.memory import model
from tests import effort

FACT, END = "<ctx:remember type=fact>", "</ctx:remember>"
REMEMBER = '<ctx:remember type="fact" tags="tier:reference">What to remember.</ctx:remember>'
RECALL = '<ctx:recall query="how do we deploy"/>'

ParsedCommand = tuple[str, Mapping[str, str], str]

STATUS: ParsedCommand = ("status", {}, "")


def parsed_commands(text: str) -> list[ParsedCommand]:
    """The name, attributes and content of each command in a text without mistakes."""
    found = parse(text)
    assert [each.position for each in found] == list(range(len(found)))
    commands = [each for each in found if isinstance(each, Command)]
    assert len(commands) == len(found), found
    return [(each.name, each.attributes, each.content) for each in commands]


def fact(content: str, **attributes: str) -> ParsedCommand:
    return ("remember", {"type": "fact", **attributes}, content)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '<ctx:remember type="fact" tags="topic:a,tier:reference">\nWAL.\n</ctx:remember>',
            fact("WAL.", tags="topic:a,tier:reference"),
        ),
        (
            '<ctx:recall query="type:decision AND tag:project:viberent"/>',
            ("recall", {"query": "type:decision AND tag:project:viberent"}, ""),
        ),
        (
            '<ctx:summarize nodes="01HQ1234,01HQ5678" archive=true>\nA.\n\n  B.\n</ctx:summarize>',
            ("summarize", {"nodes": "01HQ1234,01HQ5678", "archive": "true"}, "A.\n\n  B."),
        ),
        (
            '<ctx:link from="01HQ1234" to="01HQ5678" type="DEPENDS_ON"/>',
            ("link", {"from": "01HQ1234", "to": "01HQ5678", "type": "DEPENDS_ON"}, ""),
        ),
        (
            '<ctx:link from="01HQ1234" to="01HQ5678"/>',
            ("link", {"from": "01HQ1234", "to": "01HQ5678", "type": "RELATES_TO"}, ""),
        ),
        ("<ctx:status/>", STATUS),
        (
            '<ctx:task name="implement-oauth" action="start"/>',
            ("task", {"name": "implement-oauth", "action": "start"}, ""),
        ),
        (
            '<ctx:task name="implement-oauth" action="end" summarize="true"/>',
            ("task", {"name": "implement-oauth", "action": "end", "summarize": "true"}, ""),
        ),
        ('<ctx:expand node="01HQ1234"/>', ("expand", {"node": "01HQ1234"}, "")),
        (
            '<ctx:supersede old="01HQ1234" new="01HQ5678"/>',
            ("supersede", {"old": "01HQ1234", "new": "01HQ5678"}, ""),
        ),
        (
            (
                '<ctx:remember type="decision" scope="user" summary="S" rationale="R" tags="a"'
                ' supersedes="01HQ1234">We use it</ctx:remember>'
            ),
            (
                "remember",
                {
                    "type": "decision",
                    "scope": "user",
                    "summary": "S",
                    "rationale": "R",
                    "tags": "a",
                    "supersedes": "01HQ1234",
                },
                "We use it",
            ),
        ),
    ],
)
def test_every_command_is_parsed(text: str, expected: ParsedCommand) -> None:
    assert parsed_commands(text) == [expected]
    assert parsed_commands(f"Some prose.\n\n{text}\n\nMore prose.") == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<ctx:status />", STATUS),
        ("<ctx:status\n/ >", STATUS),
        ("<ctx:status></ctx:status>", STATUS),
        ("<ctx:status>", STATUS),
        ("<ctx:Status/>", STATUS),
        ("<ctx:remember TYPE='Fact'>x</ctx:REMEMBER >", fact("x")),
        (
            "<ctx:remember type=fact tags=tier:reference,a>x</ctx:remember>",
            fact("x", tags="tier:reference,a"),
        ),
        (
            "<ctx:remember\n  type = 'fact'\n\n  tags=\"a, b c\"\n>x</ctx:remember>",
            fact("x", tags="a,b,c"),
        ),
        ('<ctx:remember type="fact"tags="a">x</ctx:remember>', fact("x", tags="a")),
        ("<ctx:remember type=“fact” tags=„a“>x</ctx:remember>", fact("x", tags="a")),
        ("<ctx:remember type=‘fact’>x</ctx:remember>", fact("x")),
        ('<ctx:remember type="fact" tier="pinned">x</ctx:remember>', fact("x", tags="tier:pinned")),
        (
            '<ctx:remember type="fact" tags="a" tier="tier:Working">x</ctx:remember>',
            fact("x", tags="a,tier:working"),
        ),
        (
            '<ctx:remember type="fact" tags="tier:working" tier="working">x</ctx:remember>',
            fact("x", tags="tier:working"),
        ),
        ('<ctx:remember type="fact" tags="" summary=" ">x</ctx:remember>', fact("x")),
        (
            '<ctx:remember type="open_question">x</ctx:remember>',
            ("remember", {"type": "open-question"}, "x"),
        ),
        (
            "<ctx:summarize nodes='[fact:01HQ1234] decision:01HQ5678' archive>x</ctx:summarize>",
            ("summarize", {"nodes": "01HQ1234,01HQ5678", "archive": "true"}, "x"),
        ),
        (
            "<ctx:link from=01HQ1234 to=01HQ5678 type=dependsOn/>",
            ("link", {"from": "01HQ1234", "to": "01HQ5678", "type": "DEPENDS_ON"}, ""),
        ),
        ("<ctx:expand node=01HQ1234/>", ("expand", {"node": "01HQ1234"}, "")),
        (
            "<ctx:task name='a/b' action=END summarize=False />",
            ("task", {"name": "a/b", "action": "end", "summarize": "false"}, ""),
        ),
        ("<ctx:recall query='a > b && <c>'/>", ("recall", {"query": "a > b && <c>"}, "")),
        (
            '<ctx:recall query="&quot;a&quot; &lt;b&gt; &apos;c&apos; &amp;lt; &copy;"/>',
            ("recall", {"query": "\"a\" <b> 'c' &lt; &copy;"}, ""),
        ),
        (
            '<ctx:recall query="say \\"hi\\" to C:\\dir"/>',
            ("recall", {"query": 'say "hi" to C:\\dir'}, ""),
        ),
        ('<ctx:recall query="C:\\"/>', ("recall", {"query": "C:\\"}, "")),
        (
            "<ctx:recall query='what does <ctx:status/> do'/>",
            ("recall", {"query": "what does <ctx:status/> do"}, ""),
        ),
        ('<ctx:recall query="`a"/>', ("recall", {"query": "`a"}, "")),
        ('<ctx:recall query="one\n\ntwo"/>', ("recall", {"query": "one\n\ntwo"}, "")),
    ],
)
def test_unambiguous_variants_are_parsed(text: str, expected: ParsedCommand) -> None:
    assert parsed_commands(text) == [expected]


@pytest.mark.parametrize(
    "content",
    [
        "<b>bold</b> & &lt;escaped&gt;, as it is",
        "one\n\n\n  two   three\n\t- four",
        "<ctx:status/> and <ctx:recall query='x'/>, not carried out",
        'an inner <ctx:summarize nodes="a">one</ctx:summarize>',
        'an inner <ctx:remember type="fact">one</ctx:remember> in it',
        "a mention of <ctx:remember> and of <ctx:remember/>",
        "```xml\n<ctx:remember type='fact'>x</ctx:remember>\n```",
        "```\n</ctx:remember>\n```",
        "    ~~~\n    </ctx:remember>\n\n    ~~~",
        "closed by `</ctx:remember>`, always",
        "closed by `` `</ctx:remember>` ``\nor `a\nb </ctx:remember>`",
        "`</ctx:remember>` closes `<ctx:remember>`",
        "```\n<ctx:remember>a</ctx:remember>\n<ctx:remember>b</ctx:remember>\n```",
        "an example in a fence that stays open\n```\n<ctx:remember type='fact'>",
        "a \\</ctx:remember> of its own",
        "a stray ` backtick",
        "a fence that stays open\n```sh\nmake",
        "```sh\nmake\n\nmake check",
        "<!-- a comment",
        "> a quotation",
        "    indented\n\n        more",
        "a backslash \\",
        "two ``` here",
        "</ctx:summarize> alone",
        "設計 🙂 \u2028 é",
        "x" * 60_000,
    ],
)
@pytest.mark.parametrize("around", ["\n", "\n\n    "])
def test_content_is_kept_unchanged(content: str, around: str) -> None:
    text = f'<ctx:remember type="fact">{around}{content}{around}</ctx:remember>'
    expected = [fact(content.strip()), STATUS]
    assert parsed_commands(f"{text}<ctx:status/>") == expected
    assert parsed_commands(f"{text}\n\nThen:\n\n<ctx:status/>") == expected


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        # A stray backtick in each of two commands does not make code of what is between them.
        (f"{FACT}a ` b{END} and. {FACT}c ` d{END}", ["a ` b", "c ` d"]),
        (f"{FACT}\n```\na\n{END}\n\n```sh\nls\n```\n\n{FACT}b{END}", ["```\na", "b"]),
        (f"{FACT}\n```\na\n{END}\n{FACT}\n```\nb\n{END}", ["```\na", "```\nb"]),
        (f"{FACT}`{END}`\n\n" * 50, ["`"] * 50),
        # The structure around a command goes on behind it.
        (f"- {FACT}a\n\nb{END}\n\n  {FACT}c{END}\n\n      {FACT}code{END}", ["a\n\nb", "c"]),
    ],
)
def test_a_command_does_not_swallow_the_next_one(text: str, contents: list[str]) -> None:
    assert parsed_commands(text) == [fact(content) for content in contents]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no command",
        "the <ctx: prefix",
        "<ctx:…> and <ctx:*> and <ctx:>",
        "<ctx:remember:x> <ctx:a.b>",
        "use <ctx:remember to keep it, or <ctx:recall.",
        "<CTX:status/> <context:status/> < ctx:status/> &lt;ctx:status/>",
        "a stray </ctx:remember>",
    ],
)
def test_other_text_is_not_parsed(text: str) -> None:
    assert parse(text) == []
    assert parsed_commands(f"<ctx:status/>\n\n{text}") == [STATUS]


TYPES = (
    "There are: fact, decision, pattern, observation, hypothesis, task, summary, source,"
    " open-question, file, item, package, diagnostic."
)
TIERS = "There are: tier:pinned, tier:working, tier:reference, tier:off-context."
ONE_TIER = "Give one of tier:working, tier:reference, tier:off-context; `ctx pin` pins it."
TAG = (
    "A tag is namespace:value or a word, without spaces, commas and quotes, and does not end with"
    " `*`."
)
ATTRIBUTES_OF_REMEMBER = "`type`, `tags`, `tier`, `scope`, `summary`, `rationale`, `supersedes`"
QUOTE = "`query` continues after its closing quote; write a quote inside a value as `&quot;`."
UNCLOSED = "`remember` is not closed by `</ctx:remember>`."
UNENDED = "The closing `>` is missing."
ALL = "`remember`, `recall`, `summarize`, `link`, `status`, `task`, `expand`, `supersede`"


@pytest.mark.parametrize(
    ("text", "problem", "right"),
    [
        (
            '<ctx:rember type="fact">a <ctx:status/></ctx:rember>',
            "There is no command `rember`; did you mean `remember`?",
            REMEMBER,
        ),
        ("<ctx:search query='x'/>", f"There is no command `search`; there are {ALL}.", REMEMBER),
        ("<ctx:remember>a</ctx:remember>", "`remember` needs a value for `type`.", REMEMBER),
        (
            "<ctx:remember type=''>a</ctx:remember>",
            "`remember` needs a value for `type`.",
            REMEMBER,
        ),
        ("<ctx:remember type=>a</ctx:remember>", "`remember` needs a value for `type`.", REMEMBER),
        ("<ctx:remember type>a</ctx:remember>", "`type` has no value.", REMEMBER),
        (
            '<ctx:remember type="facts">a</ctx:remember>',
            f"There is no node type 'facts'. Did you mean `fact`? {TYPES}",
            REMEMBER,
        ),
        (
            '<ctx:remember typ="fact">a</ctx:remember>',
            "`remember` has no attribute `typ`; did you mean `type`?",
            REMEMBER,
        ),
        (
            '<ctx:remember type="fact" project="x">a</ctx:remember>',
            f"`remember` has no attribute `project`; there are {ATTRIBUTES_OF_REMEMBER}.",
            REMEMBER,
        ),
        (
            '<ctx:remember type="fact" TYPE="fact">a</ctx:remember>',
            "`type` is given twice.",
            REMEMBER,
        ),
        (
            '<ctx:remember type="fact" tags="a:">a</ctx:remember>',
            f"'a:' cannot be a tag. {TAG}",
            REMEMBER,
        ),
        (
            '<ctx:remember type="fact" tier="pined">a</ctx:remember>',
            f"There is no tier 'tier:pined'. Did you mean `tier:pinned`? {TIERS}",
            REMEMBER,
        ),
        (
            '<ctx:remember type="fact" tags="tier:working" tier="reference">a</ctx:remember>',
            f"A node can have only one tier besides the pin. {ONE_TIER}",
            REMEMBER,
        ),
        (
            '<ctx:remember type="fact" scope="team">a</ctx:remember>',
            "`team` is neither `user` nor `project`.",
            REMEMBER,
        ),
        ('<ctx:remember type="fact"></ctx:remember>', "`remember` has no content.", REMEMBER),
        ('<ctx:remember type="fact"> \n\t </ctx:remember>', "`remember` has no content.", REMEMBER),
        ('<ctx:remember type="fact"/>', "`remember` has no content.", REMEMBER),
        (
            '<ctx:summarize nodes="a" archive="yes">b</ctx:summarize>',
            "`yes` is neither `true` nor `false`.",
            '<ctx:summarize nodes="ID,ID" archive="true">What they say.</ctx:summarize>',
        ),
        ("<ctx:recall/>", "`recall` needs a value for `query`.", RECALL),
        ("<ctx:expand node='[fact:]'/>", "`[fact:]` is not a node.", '<ctx:expand node="ID"/>'),
        (
            "<ctx:task name='a' action='begin'/>",
            "`begin` is neither `start` nor `end`.",
            '<ctx:task name="Implement OAuth" action="start"/>',
        ),
        (
            "<ctx:link from=01HQ1234/>",
            "`link` needs a value for `to`.",
            '<ctx:link from="ID" to="ID" type="DEPENDS_ON"/>',
        ),
        ("<ctx:status all/>", "`status` has no attribute `all`; it has none.", "<ctx:status/>"),
        ('<ctx:recall query="say "hi" to"/>', QUOTE, RECALL),
        ('<ctx:recall query="a', "The quote at `query` is not closed.", RECALL),
        ('<ctx:recall query="a"', UNENDED, RECALL),
        ("<ctx:status", UNENDED, "<ctx:status/>"),
    ],
)
def test_an_invalid_command_is_reported_with_a_corrected_one(
    text: str, problem: str, right: str
) -> None:
    expected = CommandProblem(" ".join(text.split()), problem, right, 1)
    assert parse(f"<ctx:status/> {text}") == [Command("status", {}, "", 0), expected]
    # It does not stand in the way of others.
    assert parse(f"{text}\n<ctx:status/>")[1:] == [Command("status", {}, "", 1)]
    assert [type(each) for each in parse(right)] == [Command]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '<ctx:remember type="fact">Not closed. <ctx:status/>',
            [
                CommandProblem('<ctx:remember type="fact">', UNCLOSED, REMEMBER, 0),
                Command("status", {}, "", 1),
            ],
        ),
        (
            '<ctx:remember type="fact">not closed\n\n<ctx:remember type="fact">a</ctx:remember>',
            [
                CommandProblem('<ctx:remember type="fact">', UNCLOSED, REMEMBER, 0),
                Command("remember", {"type": "fact"}, "a", 1),
            ],
        ),
        (
            'I use <ctx:remember> for it. <ctx:remember type="fact">a</ctx:remember>',
            [Command("remember", {"type": "fact"}, "a", 0)],
        ),
        (
            '<ctx:recall query="a/>\n<ctx:status/>\n<ctx:recall query="b"/>',
            [
                CommandProblem('<ctx:recall query="a/>', QUOTE, RECALL, 0),
                Command("status", {}, "", 1),
                Command("recall", {"query": "b"}, "", 2),
            ],
        ),
        (
            '<ctx:recall query="a\n\n<ctx:status/>',
            [
                CommandProblem(
                    '<ctx:recall query="a', "The quote at `query` is not closed.", RECALL, 0
                ),
                Command("status", {}, "", 1),
            ],
        ),
        (
            f"<ctx:remember>{'long ' * 100}</ctx:remember>",
            [
                CommandProblem(
                    f"<ctx:remember>{'long ' * 21}…",
                    "`remember` needs a value for `type`.",
                    REMEMBER,
                    0,
                )
            ],
        ),
    ],
)
def test_a_mistake_gives_one_problem_and_runs_nothing_else(
    text: str, expected: list[Command | CommandProblem]
) -> None:
    assert parse(text) == expected


# Rendering, for what must come back as it was.

TEXT = st.text(min_size=1, max_size=30).map(str.strip).filter(bool)
ID = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=4, max_size=26)
IDS = st.lists(ID, min_size=1, max_size=3).map(",".join)
TAGS = st.lists(
    st.sampled_from(["a", "topic:auth", "tier:reference", "tier:pinned", "ö:ü"]),
    min_size=1,
    unique=True,
).map(",".join)
YES_OR_NO = st.sampled_from(["true", "false"])
MARKUP = st.sampled_from([
    "`", "``", "```", "~~~", "\n", "\n\n", "    ", "- ", "> ", "#", "<!--", "-->", "<b>", "\\",
    "\r\n", "&lt;", '"', "'", "<ctx:", "<ctx:status/>", "<ctx:remember>", "</ctx:",
    "<ctx:summarize>", "word", " ", "`</b>`",
])  # fmt: skip
CONTENT = (
    st.one_of(st.lists(MARKUP, max_size=12).map("".join), st.text(max_size=60))
    .map(str.strip)
    .filter(bool)
)

ATTRIBUTES: dict[
    str, tuple[dict[str, st.SearchStrategy[str]], dict[str, st.SearchStrategy[str]]]
] = {
    "remember": (
        {"type": st.sampled_from(model.NODE_TYPES)},
        {
            "tags": TAGS,
            "scope": st.sampled_from(["user", "project"]),
            "summary": TEXT,
            "rationale": TEXT,
            "supersedes": IDS,
        },
    ),
    "recall": ({"query": TEXT}, {}),
    "summarize": ({"nodes": IDS}, {"archive": YES_OR_NO, "tags": TAGS}),
    "link": ({"from": ID, "to": ID, "type": st.sampled_from(model.EDGE_TYPES)}, {}),
    "status": ({}, {}),
    "task": ({"name": TEXT, "action": st.sampled_from(["start", "end"])}, {"summarize": YES_OR_NO}),
    "expand": ({"node": ID}, {}),
    "supersede": ({"old": ID, "new": ID}, {}),
}


@st.composite
def commands(draw: st.DrawFn) -> Command:
    name = draw(st.sampled_from(list(ATTRIBUTES)))
    needed, optional = ATTRIBUTES[name]
    attributes = draw(st.fixed_dictionaries(needed, optional=optional))
    content = draw(CONTENT) if name in ("remember", "summarize") else ""
    return Command(name, attributes, content, 0)


@st.composite
def rendered(draw: st.DrawFn, command: Command) -> str:
    """A command in one of the ways in which it can be written."""
    space = st.sampled_from([" ", "  ", "\n", "\n  ", "\t"])
    parts = [f"<ctx:{command.name}"]
    for name, value in command.attributes.items():
        quote = draw(st.sampled_from("\"'"))
        entities = {
            "&": "&amp;",
            "<": "&lt;",
            ">": "&gt;",
            quote: "&quot;" if quote == '"' else "&apos;",
        }
        if not draw(st.booleans()):
            del entities[">"]
        written = "".join(entities.get(character, character) for character in value)
        parts.append(f"{draw(space)}{name}={quote}{written}{quote}")
    if command.content:
        around = draw(st.sampled_from(["", " ", "\n", "\n\n"]))
        return f"{''.join(parts)}>{around}{command.content}{around}</ctx:{command.name}>"
    end = draw(st.sampled_from(["/>", " />", f"></ctx:{command.name}>"]))
    return "".join(parts) + end


COMMAND = commands().flatmap(lambda command: st.tuples(st.just(command), rendered(command)))


@settings(max_examples=effort.times(40), deadline=None, derandomize=True)
@given(st.lists(COMMAND, min_size=1, max_size=4), st.sampled_from([" ", "\n", "\n\n", "\n\n- "]))
def test_several_commands_are_parsed_in_order(
    pairs: list[tuple[Command, str]], between: str
) -> None:
    text = between.join(["Prose first.", *(f"{text}\nand prose." for _, text in pairs)])
    expected = [command._replace(position=at) for at, (command, _) in enumerate(pairs)]
    assert parse(text) == expected


@settings(max_examples=effort.times(25), deadline=None, derandomize=True)
@given(COMMAND)
def test_commands_in_code_are_not_parsed(pair: tuple[Command, str]) -> None:
    text = pair[1]
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    lines = re.compile(r"^|(?<=\n)|(?<=\r)(?!\n)")
    assert parse(f"Prose.\n\n{ticks}xml\n{text}\n{ticks}\n\nProse.") == []
    assert parse(f"Prose.\n\n{lines.sub('    ', text)}\n\nProse.") == []
    assert parse(f"Prose.\n\n{lines.sub('> ', text)}\n\nProse.") == []
    one_line = " ".join(re.split(r"[\r\n]+", text))
    assert parse(f"Prose {ticks} {one_line} {ticks} and prose.") == []
    if "-->" not in text:
        assert parse(f"<!--\n{text}\n-->\nProse.") == []


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Fail if the block takes more CPU time than this. It would take a second, or hours."""

    def give_up(_signal: int, _frame: object) -> None:
        raise AssertionError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
