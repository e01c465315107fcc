"""What `ctx install` does to a client, and `ctx uninstall` undoes."""

from tests.e2e.claude_code.client import CTX, Person

REMEMBERS = '<ctx:remember type="fact" tags="tier:reference">Known.</ctx:remember>'


def test_install_and_uninstall_restore_the_settings(newcomer: Person) -> None:
    settings = newcomer.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    own = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}\n'
    settings.write_text(own)
    seen = newcomer.ctx("install")["clients"]
    assert [client["version"] for client in seen] == [newcomer.client.version]
    installed = settings.read_text()
    newcomer.ctx("install")
    assert settings.read_text() == installed

    first = newcomer.say("Remember.", REMEMBERS)
    assert "\n- ctx: " in first.request.injected, "the skill"
    assert [*newcomer.nodes()] == ["Known."]
    assert newcomer.ctx("doctor")["problems"] == 0

    newcomer.ctx("uninstall")
    assert settings.read_text() == own
    second = newcomer.say("What do you know?", REMEMBERS.replace("Known", "Lost"))
    assert "ctx" not in second.request.injected_at("SessionStart")
    assert "\n- ctx: " not in second.request.injected
    assert "Known." not in second.request.text
    assert [*newcomer.nodes()] == ["Known."]


def test_ctx_can_be_installed_for_one_project(newcomer: Person) -> None:
    newcomer.puts_on_path("ctx", [CTX])
    newcomer.ctx("install", "--project")
    assert not (newcomer.home / ".claude" / "settings.json").exists()
    assert _is_remembered(newcomer)

    newcomer.project = newcomer.home / "elsewhere"
    newcomer.project.mkdir()
    assert newcomer.say("Hello.", "Hi.").request.injected_at("SessionStart") == ""


def test_two_installations_give_the_context_once(person: Person) -> None:
    """The project has its own settings, and the user has installed ctx for all projects."""
    person.puts_on_path("ctx", [CTX])
    person.ctx("install", "--project")
    assert _is_remembered(person)
    asked = person.say("And?", '<ctx:recall query="known"/>')
    then = person.say("Well?", "Yes.", resume=asked.session)
    assert then.request.newest.injected.count("## Recall Results") == 1


def test_a_missing_hook_program_does_not_stop_the_client(person: Person) -> None:
    settings = person.home / ".claude" / "settings.json"
    registered = settings.read_text()
    assert "/claude_code/entry.py" in registered
    settings.write_text(registered.replace("/claude_code/entry.py", "/claude_code/gone.py"))
    assert person.say("Hello.", "Hi.").result == "Hi."


def _is_remembered(person: Person) -> bool:
    person.say("Remember.", REMEMBERS)
    assert [*person.nodes()] == ["Known."]
    given = person.say("What do you know?", "That.").request
    return given.injected.count("Known.") == 1 and given.injected.count("<!-- ctx:end -->") == 1
