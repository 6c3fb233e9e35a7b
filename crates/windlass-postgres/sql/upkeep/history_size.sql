-- How much is kept, as far as a bounded look reaches: rows, and bytes of a row on average. $1 bound.
SELECT count(*), coalesce(avg(h.bytes), 0)::bigint
FROM (
  SELECT
    200 + pg_column_size(h.payload) + coalesce(pg_column_size(h.output), 0) + coalesce(pg_column_size(h.error), 0)
      + coalesce(pg_column_size(h.log), 0) AS bytes
  FROM windlass.history AS h
  ORDER BY h.id DESC
  LIMIT $1
) AS h
