"""The SQL and the commands in the page about teams work as they are written."""

import re
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from psycopg import errors

from ctx.sync.team_target import TeamTarget
from tests.conftest import Sql
from tests.postgres_server import PostgresServer, programs
from tests.sync.conftest import On

DOCS = Path(__file__).parent.parent.parent / "docs"
_BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_sql_of_the_page_works(postgres: PostgresServer, database: str) -> None:
    """Roles belong to the whole server, so they get names of their own."""
    with closing(TeamTarget(postgres.url(database=database))) as target:
        target.listing()
    names = {name: f"{name}_{database}" for name in ("anna", "ben", "ctx_backup")}
    found = _BLOCK.findall((DOCS / "team.md").read_text())
    assert len(found) > 5
    for block in found:
        for name, own in names.items():
            block = re.sub(rf"\b{name}\b", own, block)
        is_admin = "as the administrator" in block
        with postgres.connect("postgres" if is_admin else names["anna"], database) as connection:
            for statement in block.split(";\n"):
                if statement.strip():
                    connection.execute(statement.encode())


def test_a_dump_is_restored_and_a_later_scrub_is_applied_again(
    on: On, sql: Sql, postgres: PostgresServer, team: str, tmp_path: Path
) -> None:
    def run(program: str, *words: str) -> None:
        server = ["--host=127.0.0.1", f"--port={postgres.port}", "--username=postgres"]
        command = [str(programs() / program), *server, *words]
        subprocess.run(command, check=True, capture_output=True)

    on("anna", "add", "The door opens with 4711-Xy.", "--tag", "project:shop", "--no-tier")
    on("anna", "sync")
    dump = str(tmp_path / "memory.dump")
    run("pg_dumpall", "--roles-only", "--no-role-passwords", f"--file={tmp_path / 'roles.sql'}")
    schemas = ("--schema=ctx", "--schema=ctx_graph")
    run("pg_dump", "--format=custom", *schemas, f"--file={dump}", team)
    on("anna", "add", "Newer than the backup.", "--tag", "project:shop", "--no-tier")
    on("anna", "scrub", "4711-Xy", "--yes")
    on("anna", "sync")
    sql("postgres", "DROP SCHEMA ctx, ctx_graph CASCADE")
    run("pg_restore", "--exit-on-error", f"--dbname={team}", dump)
    assert sql("ben", "SELECT content FROM ctx.nodes") == [("The door opens with 4711-Xy.",)]
    assert sql("ben", "SELECT count(*) FROM ctx_graph.nodes_with('door', NULL)") == [(1,)]
    old = sql("anna", "SELECT name FROM ctx.batches WHERE project = 'shop'")
    on("anna", "sync")
    contents = [row[0] for row in sql("ben", "SELECT content FROM ctx.nodes ORDER BY 1")]
    assert contents == ["Newer than the backup.", "The door opens with [scrubbed]."]
    assert not {*old} & {*sql("anna", "SELECT name FROM ctx.batches")}
    bodies = [row[0] for row in sql("anna", "SELECT body::text FROM ctx.records")]
    assert not [body for body in bodies if "4711" in body]


def test_an_administrator_without_superuser_is_enough(
    postgres: PostgresServer, database: str
) -> None:
    """As with a managed service."""
    names = {name: f"{name}_{database}" for name in ("manager", "anna", "ben")}
    with postgres.connect() as connection:
        connection.execute(f"CREATE ROLE {names['manager']} LOGIN CREATEROLE".encode())
        connection.execute(f"ALTER DATABASE {database} OWNER TO {names['manager']}".encode())
        with suppress(errors.UndefinedObject):
            # Another test has created it. Whoever creates a role may give it to others.
            connection.execute(f"GRANT ctx_member TO {names['manager']} WITH ADMIN OPTION".encode())
    with closing(TeamTarget(postgres.url(names["manager"], database))) as target:
        target.listing()
    with postgres.connect(names["manager"], database) as connection:
        for name in ("anna", "ben"):
            connection.execute(f"CREATE ROLE {names[name]} LOGIN IN ROLE ctx_member".encode())
    with postgres.connect(names["anna"], database) as connection:
        connection.execute("INSERT INTO ctx.projects (name) VALUES ('shop')")
        connection.execute("INSERT INTO ctx.subjects VALUES ('x', 'shop', '')")
    with closing(TeamTarget(postgres.url(names["ben"], database))) as target:
        assert target.places(["x", "y"]) == {"x": None}


def test_the_compose_file_listens_on_loopback_and_uses_tls() -> None:
    path = DOCS / "examples" / "team-server" / "compose.yaml"
    service = yaml.safe_load(path.read_text())["services"]["database"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "ssl=on" in service["command"]
    assert {*service["secrets"]} == {"password", "certificate", "key"}
