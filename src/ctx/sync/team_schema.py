"""The tables of a team's PostgreSQL server, and how they are created and updated.

A row belongs to a project or to one person: `project` is set and `owner` is empty, or the other way
round. Both are empty in batches without records, which tell every member what a replica has
applied. Row-level security compares these two columns with the user of the connection. What a
member may not set, such as who sent a record, is not granted as a column.

Migrations are numbered and run in one transaction, under an advisory lock. They first *expand* the
schema: they add what newer versions need, and older versions ignore it. A later one *contracts* it,
and then `needs` is the oldest version of this list that still works.
"""

from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

from ctx.errors import NewerFormat, SyncFailure
from ctx.sync.team_store_schema import BULK_CHANGES, STORE_VIEWS

if TYPE_CHECKING:
    from psycopg import Connection

_LOCK = 0x637478
"""The key of the advisory lock: `ctx`."""


class Migration(NamedTuple):
    sql: LiteralString
    needs: int
    """The oldest version of ctx, as a number of this list, that works afterwards."""


_FIRST: LiteralString = """
DO $$ BEGIN
    CREATE ROLE ctx_member NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ BEGIN
    IF NOT pg_has_role(current_user, 'ctx_member', 'MEMBER') THEN
        EXECUTE format('GRANT ctx_member TO %I', current_user);
    END IF;
END $$;

CREATE TABLE ctx.projects (
    name text PRIMARY KEY CHECK (name <> ''),
    created_by text NOT NULL DEFAULT current_user,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE ctx.members (
    project text NOT NULL REFERENCES ctx.projects (name) ON DELETE CASCADE,
    member text NOT NULL CHECK (member <> ''),
    role text NOT NULL CHECK (role IN ('owner', 'writer', 'reader')),
    added_by text NOT NULL DEFAULT current_user,
    added_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project, member)
);
CREATE INDEX members_member ON ctx.members (member);

-- The projects in which a member has one of some roles. It reads rows that the caller may not see,
-- so it answers only about users whose rights the caller has.
CREATE FUNCTION ctx.projects_of(wanted text, roles text[]) RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(m.project), '{}') FROM ctx.members AS m
    WHERE m.member = wanted AND m.role = ANY (roles)
        AND pg_has_role(session_user, wanted::name, 'MEMBER')
$$;
CREATE FUNCTION ctx.add_first_owner() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO ctx.members (project, member, role, added_by)
    VALUES (NEW.name, NEW.created_by, 'owner', NEW.created_by);
    RETURN NULL;
END $$;
CREATE TRIGGER add_first_owner AFTER INSERT ON ctx.projects
    FOR EACH ROW EXECUTE FUNCTION ctx.add_first_owner();
-- Without an owner, nobody could add members any more. The project is locked, so that two owners
-- cannot remove each other at the same time.
CREATE FUNCTION ctx.keep_an_owner() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM ctx.projects WHERE name = OLD.project FOR UPDATE;
    IF FOUND AND NOT EXISTS (
        SELECT FROM ctx.members WHERE project = OLD.project AND role = 'owner')
    THEN
        RAISE EXCEPTION 'the project % needs an owner', OLD.project
            USING HINT = 'Make another member an owner first.', ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER keep_an_owner AFTER UPDATE OR DELETE ON ctx.members
    FOR EACH ROW WHEN (OLD.role = 'owner') EXECUTE FUNCTION ctx.keep_an_owner();

CREATE TABLE ctx.batches (
    project text NOT NULL,
    owner text NOT NULL,
    name text NOT NULL,
    data bytea NOT NULL,
    machine text NOT NULL,
    member text NOT NULL DEFAULT current_user,
    sent_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project, owner, name),
    CHECK (project = '' OR owner = '')
) PARTITION BY HASH (project, owner);

-- Where each node belongs. Records about it cannot be anywhere else, and move along with it.
CREATE TABLE ctx.subjects (
    id text PRIMARY KEY,
    project text NOT NULL,
    owner text NOT NULL,
    UNIQUE (id, project, owner),
    CHECK ((project = '') <> (owner = ''))
);
-- Which of some nodes exist, also those that the caller may not see.
CREATE FUNCTION ctx.existing(ids text[]) RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(s.id), '{}') FROM ctx.subjects AS s WHERE s.id = ANY (ids)
$$;

CREATE TABLE ctx.records (
    project text NOT NULL,
    owner text NOT NULL,
    id text COLLATE "C" NOT NULL,
    stamp bigint NOT NULL,
    change text NOT NULL,
    action text NOT NULL,
    kind text NOT NULL,
    subject text NOT NULL,
    key text NOT NULL,
    target text,
    body json NOT NULL,
    session text NOT NULL,
    author text NOT NULL,
    version text NOT NULL,
    replaces text NOT NULL,
    depth integer NOT NULL,
    machine text NOT NULL,
    member text NOT NULL DEFAULT current_user,
    sent_at timestamptz NOT NULL DEFAULT now(),
    node text,
    PRIMARY KEY (project, owner, id),
    CHECK ((project = '') <> (owner = '')),
    CHECK (node IS NOT NULL OR project = ''),
    CHECK (node IS NOT DISTINCT FROM
        CASE WHEN kind ~ '^(node|tag|edge)[.]' THEN subject END),
    FOREIGN KEY (node, project, owner) REFERENCES ctx.subjects (id, project, owner)
        ON UPDATE CASCADE
) PARTITION BY HASH (project, owner);
CREATE INDEX records_subject ON ctx.records (project, owner, subject);
CREATE INDEX records_node ON ctx.records (node);
CREATE INDEX records_id ON ctx.records (id);

-- The node that each record is about, or the person whose record it is. A record with the id of
-- another one is left out: otherwise a writer of one project could replace a record of another one
-- in the stores of people who have both.
CREATE TABLE ctx.record_ids (id text COLLATE "C" PRIMARY KEY, holder text NOT NULL);
CREATE FUNCTION ctx.claim_record_id() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE wanted text := coalesce(NEW.node, '@' || NEW.owner);
BEGIN
    INSERT INTO ctx.record_ids VALUES (NEW.id, wanted) ON CONFLICT DO NOTHING;
    IF EXISTS (SELECT FROM ctx.record_ids WHERE id = NEW.id AND holder = wanted) THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER claim_record_id BEFORE INSERT ON ctx.records
    FOR EACH ROW EXECUTE FUNCTION ctx.claim_record_id();
-- Which of some records exist, also those that the caller may not see.
CREATE FUNCTION ctx.existing_records(ids text[]) RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(r.id), '{}') FROM ctx.record_ids AS r WHERE r.id = ANY (ids)
$$;

CREATE TABLE ctx.nodes (
    project text NOT NULL,
    owner text NOT NULL,
    id text NOT NULL,
    type text NOT NULL,
    content text NOT NULL,
    summary text,
    token_estimate integer NOT NULL,
    created_at text NOT NULL,
    updated_at text NOT NULL,
    metadata json NOT NULL,
    PRIMARY KEY (project, owner, id),
    CHECK ((project = '') <> (owner = ''))
) PARTITION BY HASH (project, owner);
CREATE INDEX nodes_id ON ctx.nodes (id);

CREATE TABLE ctx.tags (
    project text NOT NULL,
    owner text NOT NULL,
    node_id text NOT NULL,
    tag text NOT NULL,
    created_at text NOT NULL,
    PRIMARY KEY (project, owner, node_id, tag),
    CHECK ((project = '') <> (owner = ''))
) PARTITION BY HASH (project, owner);
CREATE INDEX tags_tag ON ctx.tags (tag, node_id);

CREATE TABLE ctx.stored_edges (
    project text NOT NULL,
    owner text NOT NULL,
    id text NOT NULL,
    from_id text NOT NULL,
    to_id text NOT NULL,
    type text NOT NULL,
    created_at text NOT NULL,
    metadata json NOT NULL,
    PRIMARY KEY (project, owner, from_id, to_id, type),
    CHECK ((project = '') <> (owner = ''))
) PARTITION BY HASH (project, owner);
CREATE INDEX stored_edges_to ON ctx.stored_edges (to_id);

-- An edge exists as long as both of its nodes do.
CREATE VIEW ctx.edges WITH (security_invoker = true) AS
    SELECT * FROM ctx.stored_edges AS e
    WHERE EXISTS (SELECT FROM ctx.nodes AS n WHERE n.id = e.to_id);

-- PostgreSQL plans a statement for each partition, so there are few. Older servers have eight.
DO $$ DECLARE name text; part integer; BEGIN
    FOREACH name IN ARRAY
        ARRAY['batches', 'records', 'nodes', 'tags', 'stored_edges', 'subjects'] LOOP
        FOR part IN 0 .. 1 LOOP
            EXIT WHEN name = 'subjects';
            EXECUTE format('CREATE TABLE ctx.%I PARTITION OF ctx.%I'
                ' FOR VALUES WITH (MODULUS 2, REMAINDER %s)', name || '_' || part, name, part);
        END LOOP;
        EXECUTE format('ALTER TABLE ctx.%I ENABLE ROW LEVEL SECURITY', name);
        -- ctx.existing has to see all subjects, also if its owner is no superuser.
        IF name <> 'subjects' THEN
            EXECUTE format('ALTER TABLE ctx.%I FORCE ROW LEVEL SECURITY', name);
        END IF;
        EXECUTE format($policy$
            CREATE POLICY readable ON ctx.%I FOR SELECT USING (
                (project = '' AND owner = current_user)
                OR project = ANY ((SELECT ctx.projects_of(
                    current_user, '{owner,writer,reader}'))::text[]))$policy$, name);
        EXECUTE format($policy$
            CREATE POLICY writable ON ctx.%I FOR ALL USING (
                (project = '' AND owner = current_user)
                OR project = ANY ((SELECT ctx.projects_of(
                    current_user, '{owner,writer}'))::text[]))$policy$, name);
    END LOOP;
END $$;
CREATE POLICY readable_by_all ON ctx.batches FOR SELECT USING (project = '' AND owner = '');
CREATE POLICY own ON ctx.batches FOR ALL
    USING (project = '' AND owner = '' AND member = current_user);

ALTER TABLE ctx.projects ENABLE ROW LEVEL SECURITY;
ALTER TABLE ctx.members ENABLE ROW LEVEL SECURITY;
CREATE POLICY readable ON ctx.projects FOR SELECT USING (
    name = ANY ((SELECT ctx.projects_of(current_user, '{owner,writer,reader}'))::text[]));
CREATE POLICY created ON ctx.projects FOR INSERT WITH CHECK (created_by = current_user);
CREATE POLICY readable ON ctx.members FOR SELECT USING (
    project = ANY ((SELECT ctx.projects_of(current_user, '{owner,writer,reader}'))::text[]));
CREATE POLICY owned ON ctx.members FOR ALL USING (
    project = ANY ((SELECT ctx.projects_of(current_user, '{owner}'))::text[]));

GRANT USAGE ON SCHEMA ctx TO ctx_member;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ctx FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ctx.projects_of, ctx.existing, ctx.existing_records TO ctx_member;
GRANT SELECT ON ctx.schema_versions, ctx.projects, ctx.members, ctx.batches, ctx.records,
    ctx.nodes, ctx.tags, ctx.stored_edges, ctx.edges, ctx.subjects TO ctx_member;
GRANT INSERT (name) ON ctx.projects TO ctx_member;
GRANT INSERT (project, member, role), UPDATE (role), DELETE ON ctx.members TO ctx_member;
GRANT INSERT (project, owner, name, data, machine), UPDATE (data), DELETE
    ON ctx.batches TO ctx_member;
GRANT INSERT (project, owner, id, stamp, change, action, kind, subject, key, target, body, session,
    author, version, replaces, depth, machine, node),
    UPDATE (key, target, body, version, replaces, depth)
    ON ctx.records TO ctx_member;
GRANT INSERT, UPDATE (project, owner) ON ctx.subjects TO ctx_member;
GRANT INSERT, UPDATE, DELETE ON ctx.nodes, ctx.tags, ctx.stored_edges TO ctx_member;
"""

# A machine that catches up reads batches by their names. Before PostgreSQL 18, an index that begins
# with other columns is read whole for each.
_BATCH_NAMES: LiteralString = "CREATE INDEX batches_name ON ctx.batches (name)"

MIGRATIONS = (
    Migration(_FIRST, 1),
    Migration(STORE_VIEWS, 1),
    Migration(BULK_CHANGES, 1),
    Migration(_BATCH_NAMES, 1),
)
VERSION = len(MIGRATIONS)
_STORE_COLUMNS_VERSION = 2
"""The first version whose nodes and edges have the columns of a store."""
DIRECT_VERSION = 3
"""The first version that commands can work on without a replica."""

_VERSIONS: LiteralString = """
CREATE SCHEMA IF NOT EXISTS ctx;
CREATE TABLE IF NOT EXISTS ctx.schema_versions (
    version integer PRIMARY KEY,
    needs integer NOT NULL,
    applied_by text NOT NULL DEFAULT current_user,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


def prepare(connection: "Connection[Any]") -> int:
    """Check that the server has tables that this version can use; create or update them if the
    user may. Older tables are used as they are if the user may not update them. Returns the
    version of the tables."""
    version, needs = _installed(connection)
    if version < VERSION:
        if _may_migrate(connection, version):
            migrate(connection)
            version, needs = _installed(connection)
        elif version == 0:
            raise SyncFailure(
                "The database is not prepared for ctx, and you may not create a schema in it.",
                hint="Ask its administrator to run `ctx sync add` with the same address.",
            )
    if needs > VERSION:
        raise NewerFormat("The server needs a newer version of ctx.")
    return version


def has_store_columns(connection: "Connection[Any]") -> bool:
    """Whether nodes and edges have the columns of a store."""
    return _installed(connection)[0] >= _STORE_COLUMNS_VERSION


def migrate(connection: "Connection[Any]", migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Run the migrations that the server lacks, all or none. One process at a time does this."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        connection.execute(_VERSIONS)
        version, _ = _installed(connection)
        for number, migration in enumerate(migrations[version:], version + 1):
            connection.execute(migration.sql)
            connection.execute(
                "INSERT INTO ctx.schema_versions (version, needs) VALUES (%s, %s)",
                (number, migration.needs),
            )


def _installed(connection: "Connection[Any]") -> tuple[int, int]:
    """The number of migrations that the server has, and the oldest version that it works with."""
    exists = connection.execute("SELECT to_regnamespace('ctx') IS NOT NULL").fetchone()
    if exists is None or not exists[0]:
        return 0, 0
    row = connection.execute(
        "SELECT coalesce(max(version), 0), coalesce(max(needs), 0) FROM ctx.schema_versions"
    ).fetchone()
    return (row[0], row[1]) if row else (0, 0)


def _may_migrate(connection: "Connection[Any]", version: int) -> bool:
    if version:
        question: LiteralString = (
            "SELECT pg_has_role(current_user, nspowner, 'USAGE') FROM pg_namespace"
            " WHERE nspname = 'ctx'"
        )
    else:
        question = "SELECT has_database_privilege(current_database(), 'CREATE')"
    row = connection.execute(question).fetchone()
    return bool(row and row[0])
