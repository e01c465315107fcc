"""The second and third migration of a team's server: what commands need that work on the server
itself.

The schema `ctx_graph` shows the graph that one member sees under the names of a store's tables
(`memory/schema.sql`), so that the statements of `memory/` run on both. It has views only. What is
superseded is computed when it is read: it depends on the edges that a member may see.

The sender of a node adds its words: `terms` (`ctx.terms`), and `search`, a `tsvector` that lists
each word once, with as many positions as the word occurs. For rows of older versions of ctx, which
do not know them, a trigger takes the plain words of the text. It moves `search` to a table of its
own, `ctx.words`: with row-level security, PostgreSQL cannot use an index of words. Members read
this table through functions alone, which look only at what the member may read.

The number of words of a node is in both tables: beside the words for a search, and in the node for
the trigger that adds up the totals of a statement.
"""

from typing import LiteralString

_READABLE: LiteralString = """pg_has_role(session_user, wanted::name, 'MEMBER')
        AND ((project = '' AND owner = wanted) OR project = ANY ((SELECT ctx.projects_of(
            wanted, '{owner,writer,reader}'))::text[]))"""
"""That the user `wanted` may read a row, and that the caller may ask in their name."""

STORE_VIEWS: LiteralString = r"""
-- Ids, tags and times are compared byte by byte, as in a store.
DROP VIEW ctx.edges;
ALTER TABLE ctx.nodes
    ALTER COLUMN id TYPE text COLLATE "C", ALTER COLUMN type TYPE text COLLATE "C",
    ALTER COLUMN created_at TYPE text COLLATE "C", ALTER COLUMN updated_at TYPE text COLLATE "C";
ALTER TABLE ctx.tags
    ALTER COLUMN node_id TYPE text COLLATE "C", ALTER COLUMN tag TYPE text COLLATE "C";
ALTER TABLE ctx.stored_edges
    ALTER COLUMN id TYPE text COLLATE "C", ALTER COLUMN from_id TYPE text COLLATE "C",
    ALTER COLUMN to_id TYPE text COLLATE "C", ALTER COLUMN type TYPE text COLLATE "C",
    ALTER COLUMN created_at TYPE text COLLATE "C",
    -- Whether it points to a node of another store. Older versions do not set it.
    ADD COLUMN outside boolean NOT NULL DEFAULT false;
ALTER TABLE ctx.records
    ALTER COLUMN id TYPE text COLLATE "C", ALTER COLUMN change TYPE text COLLATE "C",
    ALTER COLUMN kind TYPE text COLLATE "C", ALTER COLUMN subject TYPE text COLLATE "C",
    ALTER COLUMN key TYPE text COLLATE "C", ALTER COLUMN target TYPE text COLLATE "C",
    ALTER COLUMN session TYPE text COLLATE "C", ALTER COLUMN author TYPE text COLLATE "C";
CREATE VIEW ctx.edges WITH (security_invoker = true) AS
    SELECT project, owner, id, from_id, to_id, type, created_at, metadata FROM ctx.stored_edges AS e
    WHERE EXISTS (SELECT FROM ctx.nodes AS n WHERE n.id = e.to_id);
GRANT SELECT ON ctx.edges TO ctx_member;

ALTER TABLE ctx.nodes ADD COLUMN terms text, ADD COLUMN words integer, ADD COLUMN search tsvector;
CREATE TABLE ctx.words (
    project text NOT NULL,
    owner text NOT NULL,
    id text COLLATE "C" NOT NULL,
    words integer NOT NULL,
    search tsvector NOT NULL,
    PRIMARY KEY (project, owner, id)
);
CREATE INDEX words_search ON ctx.words USING gin (search);
CREATE TABLE ctx.word_totals (
    project text NOT NULL,
    owner text NOT NULL,
    nodes bigint NOT NULL,
    words bigint NOT NULL,
    PRIMARY KEY (project, owner)
);
CREATE FUNCTION ctx.remove_words(project text, owner text, id text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
    WITH gone AS (
        DELETE FROM ctx.words AS w WHERE w.project = $1 AND w.owner = $2 AND w.id = $3
        RETURNING w.words
    ) UPDATE ctx.word_totals AS t SET nodes = t.nodes - 1, words = t.words - gone.words
    FROM gone WHERE t.project = $1 AND t.owner = $2
$$;
CREATE FUNCTION ctx.index_words() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM ctx.remove_words(OLD.project, OLD.owner, OLD.id);
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    IF NEW.terms IS NULL THEN
        -- A text whose words are too many for a tsvector is cut.
        NEW.search := to_tsvector('simple',
            left(concat_ws(E'\n', NEW.content, NEW.summary), 100000));
        NEW.words := (SELECT sum(cardinality(positions)) FROM unnest(NEW.search));
    END IF;
    PERFORM ctx.remove_words(NEW.project, NEW.owner, NEW.id);
    INSERT INTO ctx.words VALUES (NEW.project, NEW.owner, NEW.id, coalesce(NEW.words, 0),
        coalesce(NEW.search, ''));
    INSERT INTO ctx.word_totals AS t VALUES (NEW.project, NEW.owner, 1, coalesce(NEW.words, 0))
        ON CONFLICT (project, owner)
        DO UPDATE SET nodes = t.nodes + 1, words = t.words + excluded.words;
    NEW.search := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER index_words BEFORE INSERT OR UPDATE OR DELETE ON ctx.nodes
    FOR EACH ROW EXECUTE FUNCTION ctx.index_words();
ALTER TABLE ctx.nodes NO FORCE ROW LEVEL SECURITY;
UPDATE ctx.nodes SET search = NULL;
ALTER TABLE ctx.nodes FORCE ROW LEVEL SECURITY;

-- The nodes that have words and that a user may read, newest first.
CREATE FUNCTION ctx.nodes_with(wanted text, query tsquery, most bigint)
RETURNS TABLE (id text, words integer, search tsvector)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT w.id, w.words, w.search FROM ctx.words AS w
    WHERE w.search @@ query AND <readable>
    ORDER BY w.id DESC LIMIT most
$$;
CREATE FUNCTION ctx.count_with(wanted text, query tsquery, most bigint) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(*) FROM (
        SELECT FROM ctx.words AS w
        WHERE w.search @@ query AND <readable>
        LIMIT most
    ) AS found
$$;
-- The number of nodes that a user may read, and the mean number of their words.
CREATE FUNCTION ctx.corpus(wanted text, OUT nodes float8, OUT words float8)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(sum(t.nodes), 0), coalesce(sum(t.words) / nullif(sum(t.nodes), 0), 1)
    FROM ctx.word_totals AS t
    WHERE <readable>
$$;

-- A value of an object. PostgreSQL refuses to read an object that contains NUL.
CREATE FUNCTION ctx.json_text(object json, key text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN strpos(object::text, '\u0000') > 0
        THEN replace(object::text, '\u0000', '\ufffd')::json ELSE object END ->> key
$$;
CREATE INDEX nodes_type ON ctx.nodes (type, id);
CREATE INDEX nodes_created ON ctx.nodes (created_at, id);
CREATE INDEX nodes_updated ON ctx.nodes (updated_at, id);
CREATE INDEX nodes_path ON ctx.nodes (ctx.json_text(metadata, 'path') COLLATE "C")
    WHERE ctx.json_text(metadata, 'path') IS NOT NULL;
CREATE INDEX nodes_proposed ON ctx.nodes (id) WHERE ctx.json_text(metadata, 'proposed') IS NOT NULL;
CREATE INDEX tags_node ON ctx.tags (node_id, tag);
CREATE INDEX stored_edges_from ON ctx.stored_edges (from_id);
CREATE INDEX stored_edges_superseded ON ctx.stored_edges (to_id) WHERE type = 'SUPERSEDES';
CREATE INDEX records_by_subject ON ctx.records (subject, key);
CREATE INDEX records_target ON ctx.records (target) WHERE target IS NOT NULL;
CREATE INDEX records_change ON ctx.records (change);
CREATE INDEX records_stamp ON ctx.records (stamp);
CREATE INDEX records_session ON ctx.records (session, subject) WHERE session <> '';
CREATE INDEX records_without_node ON ctx.records (owner, kind, subject) WHERE node IS NULL;

CREATE SCHEMA ctx_graph;
CREATE VIEW ctx_graph.tags WITH (security_invoker = true) AS
    SELECT node_id, tag, created_at FROM ctx.tags;
CREATE VIEW ctx_graph.edges WITH (security_invoker = true) AS
    SELECT id, from_id, to_id, type, created_at, metadata FROM ctx.stored_edges AS e
    WHERE NOT outside AND EXISTS (SELECT FROM ctx.nodes AS n WHERE n.id = e.to_id);
CREATE VIEW ctx_graph.outside WITH (security_invoker = true) AS
    SELECT id, from_id, to_id, type, created_at, metadata FROM ctx.stored_edges WHERE outside;
CREATE VIEW ctx_graph.records WITH (security_invoker = true) AS
    SELECT id, stamp, change, action, kind, subject, key, target, body, session, author, member
    FROM ctx.records;
-- A change of another member.
CREATE VIEW ctx_graph.sync_changes WITH (security_invoker = true) AS
    SELECT DISTINCT change FROM ctx.records WHERE member <> current_user;

-- The newest node that supersedes another one, as in `memory/superseded.py`: edges of a cycle do
-- not count.
CREATE FUNCTION ctx_graph.superseding(node text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT e.from_id FROM ctx_graph.edges AS e
    WHERE e.to_id = node AND e.type = 'SUPERSEDES' AND NOT EXISTS (
        WITH RECURSIVE above (id) AS (
            SELECT e.from_id
            UNION SELECT x.from_id FROM ctx_graph.edges AS x JOIN above AS a ON x.to_id = a.id
            WHERE x.type = 'SUPERSEDES'
        ) SELECT FROM above WHERE above.id = node)
    ORDER BY e.created_at DESC, e.id DESC, e.from_id DESC LIMIT 1
$$;
CREATE VIEW ctx_graph.nodes WITH (security_invoker = true) AS
    SELECT n.id, n.type, n.content, n.summary, n.token_estimate,
        CASE WHEN EXISTS (SELECT FROM ctx.stored_edges AS e
            WHERE e.to_id = n.id AND e.type = 'SUPERSEDES')
        THEN ctx_graph.superseding(n.id) END AS superseded_by,
        n.created_at, n.updated_at, n.metadata,
        coalesce(n.terms, lower(concat_ws(E'\n', n.content, n.summary))) AS terms
    FROM ctx.nodes AS n;
CREATE FUNCTION ctx_graph.nodes_with(query tsquery, most bigint)
RETURNS TABLE (id text, words integer, search tsvector) LANGUAGE sql STABLE AS $$
    SELECT * FROM ctx.nodes_with(current_user, query, most)
$$;
CREATE FUNCTION ctx_graph.count_with(query tsquery, most bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT ctx.count_with(current_user, query, most) $$;
CREATE FUNCTION ctx_graph.corpus(OUT nodes float8, OUT words float8) LANGUAGE sql STABLE AS $$
    SELECT * FROM ctx.corpus(current_user)
$$;

CREATE FUNCTION ctx_graph.wall_time(stamp bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT to_char(to_timestamp((stamp >> 16) / 1000) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;
-- The current task of a place, as `replay.current_task` computes it.
CREATE VIEW ctx_graph.pending WITH (security_invoker = true) AS
    SELECT subject AS key, task AS value, ctx_graph.wall_time(stamp) AS created_at FROM (
        SELECT DISTINCT ON (subject) subject, body ->> 'task' AS task, stamp FROM ctx.records
        WHERE node IS NULL AND kind = 'task.set' ORDER BY subject, stamp DESC, id DESC
    ) AS last WHERE task <> '';
-- The views of queries, as `replay.view` computes them. Every store has the view `default`.
CREATE VIEW ctx_graph.view_records WITH (security_invoker = true) AS
    SELECT subject AS name, kind, body, stamp, id FROM ctx.records
    WHERE node IS NULL AND kind IN ('view.put', 'view.delete')
    UNION ALL SELECT 'default', 'view.put', '{"created_at":"1970-01-01T00:00:00Z",
        "query":"tag:tier:pinned OR tag:tier:reference OR tag:tier:working"}', 0, '';
CREATE VIEW ctx_graph.views WITH (security_invoker = true) AS
    SELECT last.name, last.body ->> 'query' AS query, (last.body ->> 'budget')::bigint AS budget, (
        SELECT coalesce(f.body ->> 'created_at', ctx_graph.wall_time(f.stamp))
        FROM ctx_graph.view_records AS f
        WHERE f.name = last.name AND f.kind = 'view.put' AND NOT EXISTS (
            SELECT FROM ctx_graph.view_records AS gone WHERE gone.name = f.name
            AND gone.kind = 'view.delete' AND (gone.stamp, gone.id) > (f.stamp, f.id))
        ORDER BY f.stamp, f.id LIMIT 1
    ) AS created_at,
    coalesce(last.body ->> 'updated_at', ctx_graph.wall_time(last.stamp)) AS updated_at
    FROM (
        SELECT DISTINCT ON (name) * FROM ctx_graph.view_records ORDER BY name, stamp DESC, id DESC
    ) AS last WHERE last.kind = 'view.put';

-- How often a word occurs in a node, at most 32 times. `ts_rank` of one word is the sum of 1/k² for
-- its n positions, divided by a constant: it grows with n and depends on nothing else.
CREATE FUNCTION ctx_graph.occurrences(search tsvector, word tsquery) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT width_bucket(ts_rank('{1, 1, 1, 1}', search, word)::float8, '{
        0.30000, 0.68392, 0.79368, 0.84645, 0.87761, 0.89821, 0.91286, 0.92381, 0.93231, 0.93911,
        0.94466, 0.94928, 0.95319, 0.95654, 0.95944, 0.96198, 0.96422, 0.96621, 0.96799, 0.96959,
        0.97104, 0.97236, 0.97356, 0.97466, 0.97568, 0.97661, 0.97748, 0.97828, 0.97903, 0.97973,
        0.98039, 0.98100}'::float8[])
$$;
-- A pattern of `GLOB` as a regular expression.
CREATE FUNCTION ctx_graph.glob_pattern(glob text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT '^(' || string_agg(CASE
        WHEN part[1] = '*' THEN '.*' WHEN part[1] = '?' THEN '.'
        WHEN length(part[1]) > 1 THEN '[' || regexp_replace(
            regexp_replace(substr(part[1], 2), '\\', '\\\\', 'g'), '\[', '\\[', 'g')
        ELSE regexp_replace(part[1], '([^[:alnum:]])', '\\\1') END, '' ORDER BY place) || ')$'
    FROM regexp_matches(glob, '\[\^?\]?[^]]*\]|.', 'gs') WITH ORDINALITY AS parts (part, place)
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ctx_graph FROM PUBLIC;
REVOKE ALL ON FUNCTION ctx.remove_words, ctx.index_words, ctx.nodes_with, ctx.count_with,
    ctx.corpus, ctx.json_text FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ctx.nodes_with, ctx.count_with, ctx.corpus, ctx.json_text TO ctx_member;
GRANT USAGE ON SCHEMA ctx_graph TO ctx_member;
GRANT SELECT ON ALL TABLES IN SCHEMA ctx_graph TO ctx_member;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ctx_graph TO ctx_member;
""".replace("<readable>", _READABLE)

BULK_CHANGES: LiteralString = r"""
-- A new id needs one statement: nobody else has it.
CREATE OR REPLACE FUNCTION ctx.claim_record_id() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE wanted text := coalesce(NEW.node, '@' || NEW.owner);
BEGIN
    INSERT INTO ctx.record_ids VALUES (NEW.id, wanted) ON CONFLICT DO NOTHING;
    IF FOUND OR EXISTS (SELECT FROM ctx.record_ids WHERE id = NEW.id AND holder = wanted) THEN
        RETURN NEW;
    END IF;
    RETURN NULL;
END $$;

-- The totals change once for each statement. A row that one transaction changes for each node keeps
-- all its versions until the end, and each change reads them again.
CREATE OR REPLACE FUNCTION ctx.index_words() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE'
        AND (OLD.project, OLD.owner, OLD.id) <> (NEW.project, NEW.owner, NEW.id)
    THEN
        DELETE FROM ctx.words AS w
        WHERE w.project = OLD.project AND w.owner = OLD.owner AND w.id = OLD.id;
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    IF NEW.search IS NULL THEN
        -- A text whose words are too many for a tsvector is cut.
        NEW.search := to_tsvector('simple',
            left(coalesce(NEW.terms, concat_ws(E'\n', NEW.content, NEW.summary)), 100000));
        NEW.words := (SELECT sum(cardinality(positions)) FROM unnest(NEW.search));
    END IF;
    NEW.words := coalesce(NEW.words, 0);
    INSERT INTO ctx.words VALUES (NEW.project, NEW.owner, NEW.id, NEW.words, NEW.search)
        ON CONFLICT (project, owner, id)
        DO UPDATE SET words = excluded.words, search = excluded.search;
    NEW.search := NULL;
    RETURN NEW;
END $$;
DROP FUNCTION ctx.remove_words;
CREATE FUNCTION ctx.count_words() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE ctx.word_totals AS t
        SET nodes = t.nodes - gone.nodes, words = t.words - gone.words
        FROM (
            SELECT project, owner, count(*) AS nodes, coalesce(sum(words), 0) AS words
            FROM removed GROUP BY project, owner
        ) AS gone WHERE t.project = gone.project AND t.owner = gone.owner;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO ctx.word_totals AS t
        SELECT project, owner, count(*), sum(words) FROM added GROUP BY project, owner
        ON CONFLICT (project, owner)
        DO UPDATE SET nodes = t.nodes + excluded.nodes, words = t.words + excluded.words;
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION ctx.count_words FROM PUBLIC;
CREATE TRIGGER count_added_words AFTER INSERT ON ctx.nodes
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ctx.count_words();
CREATE TRIGGER count_changed_words AFTER UPDATE ON ctx.nodes
    REFERENCING OLD TABLE AS removed NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION ctx.count_words();
CREATE TRIGGER count_removed_words AFTER DELETE ON ctx.nodes
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION ctx.count_words();

-- The rows of a node are where the node belongs, and move along with it. Otherwise a writer of one
-- project could change a node of another one for people who have both.
DO $$ DECLARE name text; id text; BEGIN
    FOREACH name IN ARRAY ARRAY['nodes', 'tags', 'stored_edges'] LOOP
        id := CASE name WHEN 'nodes' THEN 'id' WHEN 'tags' THEN 'node_id' ELSE 'from_id' END;
        EXECUTE format('ALTER TABLE ctx.%I NO FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('DELETE FROM ctx.%I AS r WHERE NOT EXISTS (SELECT FROM ctx.subjects AS s'
            ' WHERE s.id = r.%I AND s.project = r.project AND s.owner = r.owner)', name, id);
        EXECUTE format('ALTER TABLE ctx.%I ADD FOREIGN KEY (%I, project, owner)'
            ' REFERENCES ctx.subjects (id, project, owner) ON UPDATE CASCADE', name, id);
        EXECUTE format('ALTER TABLE ctx.%I FORCE ROW LEVEL SECURITY', name);
    END LOOP;
END $$;

-- The nodes that an edge supersedes. `ctx_graph.superseding` decides: it ignores cycles and edges
-- to other stores.
CREATE VIEW ctx_graph.superseded WITH (security_invoker = true) AS
    SELECT to_id AS id FROM ctx.stored_edges WHERE type = 'SUPERSEDES';
GRANT SELECT ON ctx_graph.superseded TO ctx_member;
"""
