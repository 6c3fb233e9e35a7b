-- Parts of the history, oldest first, with their bytes and their rows as the server estimates them; last the part that
-- takes the rows that fit no other. $1 name of the schema.
SELECT
  p.name, p.from_ms, p.until_ms, pg_total_relation_size(c.oid), greatest(pg_stat_get_live_tuples(c.oid), 0)
FROM (
  SELECT name, from_ms, until_ms FROM windlass.part
  UNION ALL
  SELECT 'history_rest', 9223372036854775807, 9223372036854775807
) AS p
JOIN pg_catalog.pg_class AS c ON c.relname = p.name
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = $1::text
ORDER BY p.from_ms
