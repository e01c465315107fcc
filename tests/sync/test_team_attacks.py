"""What members, servers and networks cannot do to a team: take ids, hide batches, keep ctx waiting,
pretend to be the server."""

import socket
import ssl
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from psycopg import errors

from ctx.errors import CtxError, SyncFailure
from ctx.sync import team_connection
from ctx.sync.team_target import TeamTarget
from tests.conftest import Sql
from tests.contract.batch_targets import ONE
from tests.postgres_server import PostgresServer
from tests.sync.conftest import On
from tests.sync.loopback_proxy import proxy

COPY_RECORD = """
INSERT INTO ctx.records (project, owner, id, stamp, change, action, kind, subject, key, body,
    session, author, version, replaces, depth, machine, node)
SELECT {}, id, stamp, change, action, kind, %s, key, '{{"content": "A lie."}}',
    session, author, version, replaces, depth, machine, %s
FROM ctx.records WHERE kind = 'node.put' AND project = 'attic'
"""


def contents(on: On, machine: str) -> list[str]:
    listed = on(machine, "list", "--format", "json").json
    return sorted(node["content"] for node in listed["nodes"])


# Ids and names


def test_the_id_of_a_record_cannot_be_used_in_another_project(on: On, sql: Sql) -> None:
    """A reader of the attic and writer of the shop knows the ids of the attic."""
    sql("anna", "INSERT INTO ctx.projects (name) VALUES ('attic')")
    sql("anna", "INSERT INTO ctx.members (project, member, role) VALUES ('attic','ben','reader')")
    on("anna", "add", "True in the attic.", "--tag", "project:attic")
    on("anna", "sync")
    shared = on("ben", "add", "In the shop.", "--tag", "project:shop", "--format", "json").json
    own = on("ben", "add", "My own.", "--format", "json").json
    on("ben", "sync")
    before = sql("anna", "SELECT id, project, body::text FROM ctx.records ORDER BY 1")
    for place, answer in (("'shop', ''", shared), ("'', 'ben'", own)):
        subject = answer["node"]["id"]
        # The row is left out, like one that is there already.
        assert sql("ben", COPY_RECORD.format(place), subject, subject) == [(0,)]
    assert sql("anna", "SELECT id, project, body::text FROM ctx.records ORDER BY 1") == before
    on("anna-desktop", "sync")
    assert contents(on, "anna-desktop") == ["In the shop.", "True in the attic."]


def test_an_id_that_was_used_elsewhere_does_not_stop_a_sync(on: On, sql: Sql) -> None:
    """Somebody who got a file of another member has their records, and no right to them."""
    on("anna", "view", "create", "mine", "type:fact")
    on("anna", "sync")
    (record,) = sql("anna", "SELECT id, stamp, change FROM ctx.records WHERE kind = 'view.put'")
    on("ben", "add", "From ben.", "--tag", "project:shop")
    on("ben", "sync")
    assert sql(
        "ben",
        "INSERT INTO ctx.records (project, owner, id, stamp, change, action, kind, subject, key,"
        " body, session, author, version, replaces, depth, machine) VALUES ('', 'ben', %s, %s, %s,"
        " 'view', 'view.put', 'mine', '', '{}', '', '', '', '', 0, '')",
        *record,
    ) == [(0,)]
    assert sql("ben", "SELECT kind FROM ctx.records WHERE kind = 'view.put'") == []


@pytest.mark.parametrize("place", ["'shop', ''", "'', ''"])
def test_the_name_of_a_batch_cannot_hide_it(place: str, on: On, sql: Sql) -> None:
    sql("anna", "INSERT INTO ctx.projects (name) VALUES ('attic')")
    sql(
        "anna",
        "INSERT INTO ctx.members (project, member, role)"
        " VALUES ('attic', 'ben', 'reader'), ('attic', 'cleo', 'reader')",
    )
    on("anna", "add", "True in the attic.", "--tag", "project:attic")
    on("anna", "sync")
    copied = "INSERT INTO ctx.batches (project, owner, name, data, machine)"
    for data in ("'x'", "(SELECT data FROM ctx.batches WHERE project = '' LIMIT 1)"):
        sql(
            "ben",
            f"{copied} SELECT {place}, name, {data}, '' FROM ctx.batches WHERE project = 'attic'"
            " ON CONFLICT (project, owner, name) DO UPDATE SET data = excluded.data",
        )
        sql("ben", f"{copied} VALUES ({place}, 'no batch name', 'x', '') ON CONFLICT DO NOTHING")
    done = on("cleo", "sync")
    assert contents(on, "cleo") == ["True in the attic."]
    assert "no batch name" in done.out


def test_a_batch_under_another_name_is_not_applied(on: On, sql: Sql) -> None:
    on("ben", "add", "From ben.", "--tag", "project:shop")
    on("ben", "sync")
    sql(
        "ben",
        "INSERT INTO ctx.batches (project, owner, name, data, machine)"
        " SELECT project, owner, repeat('a', 64), data, machine FROM ctx.batches"
        " WHERE project = 'shop' LIMIT 1",
    )
    sql("ben", "DELETE FROM ctx.batches WHERE project = 'shop' AND name <> repeat('a', 64)")
    done = on("cleo", "sync")
    assert "its name does not match its content" in done.out
    assert contents(on, "cleo") == []


# Owners


def test_a_project_keeps_an_owner(sql: Sql) -> None:
    leaving = "DELETE FROM ctx.members WHERE project = 'shop' AND member = 'anna'"
    stepping_down = (
        "UPDATE ctx.members SET role = 'reader' WHERE project = 'shop' AND member = 'anna'"
    )
    for statement in (leaving, stepping_down, "DELETE FROM ctx.members WHERE project = 'shop'"):
        with pytest.raises(errors.CheckViolation, match="the project shop needs an owner") as seen:
            sql("anna", statement)
        assert seen.value.diag.message_hint == "Make another member an owner first."
    sql("anna", "UPDATE ctx.members SET role = 'owner' WHERE project = 'shop' AND member = 'ben'")
    assert sql("anna", stepping_down) == [(1,)]
    assert sql("ben", leaving) == [(1,)]
    assert sql("postgres", "DELETE FROM ctx.projects WHERE name = 'shop'") == [(1,)]
    assert sql("postgres", "SELECT * FROM ctx.members WHERE project = 'shop'") == []


# Waiting


def test_a_server_that_accepts_and_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://anna@127.0.0.1:{silent.getsockname()[1]}/m?connect_timeout=2"
        with closing(TeamTarget(url)) as target, pytest.raises(SyncFailure, match="timeout"):
            target.listing()


def test_a_server_that_stops_answering_is_given_up(
    postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(postgres.port) as between:
        url = f"postgresql://postgres@127.0.0.1:{between.port}/{database}"
        with closing(TeamTarget(url)) as target:
            target.publish([ONE])
            monkeypatch.setattr(target.connection(), "silence_s", 0.01)
            between.is_silent.set()
            with pytest.raises(SyncFailure, match="does not answer"):
                target.listing()
            between.is_silent.clear()
            assert target.listing().batches == {ONE.name}


def test_a_lock_that_another_member_holds_is_given_up(
    on: On, postgres: PostgresServer, team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on("anna", "add", "In the shop.", "--tag", "project:shop")
    lock = "pg_advisory_{}lock(hashtextextended(E'ctx shop\\n', 0))"
    with postgres.connect("ben", team) as ben:
        ben.execute(f"SELECT {lock.format('')}".encode())
        monkeypatch.setattr(team_connection, "_LOCK_S", 0.2)
        assert "gave up waiting" in on("anna", "sync", code=1).err
        ben.execute(f"SELECT {lock.format('un')}".encode())
    assert "sent 3 records" in on("anna", "sync").out


# TLS


class Certificates(NamedTuple):
    authority: Path
    server: ssl.SSLContext


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    """An authority of our own, and a server called db.example.com that it knows."""
    key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    now = datetime.now(UTC)

    def certificate(name: str, issuer: str, public: ec.EllipticCurvePublicKey) -> bytes:
        is_authority = name == issuer
        made = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .sign(key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    authority, chain = tmp_path / "authority.pem", tmp_path / "server.pem"
    authority.write_bytes(certificate("ours", "ours", key.public_key()))
    private = server_key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    chain.write_bytes(certificate("db.example.com", "ours", server_key.public_key()) + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain)
    return Certificates(authority, server)


def test_a_certificate_is_checked(
    postgres: PostgresServer, database: str, certificates: Certificates, tmp_path: Path
) -> None:
    with proxy(postgres.port, certificates.server) as server:
        ours = f"&sslrootcert={certificates.authority}"
        for name, options, reason in (
            ("db.example.com", ours, None),
            ("db.example.com", f"{ours}&sslmode=verify-ca", None),
            ("db.example.com", "&sslmode=require", None),
            # The authorities of the system do not know it.
            ("db.example.com", "", "certificate verify failed"),
            ("db.example.com", "&sslmode=verify-full", "certificate verify failed"),
            ("other.example.com", ours, "does not match host name"),
            ("db.example.com", f"&sslrootcert={tmp_path}/none.pem", "does not exist"),
        ):
            url = (
                f"postgresql://postgres@{name}:{server.port}/{database}?hostaddr=127.0.0.1{options}"
            )
            with closing(TeamTarget(url)) as target:
                if reason is None:
                    assert target.listing().batches == frozenset()
                    ssl_in_use = target.connection().pgconn.ssl_in_use
                    assert ssl_in_use, options
                else:
                    with pytest.raises(CtxError, match=reason):
                        target.listing()
