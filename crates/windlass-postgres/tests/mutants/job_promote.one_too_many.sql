-- Broken: a job lets one task more through than it has room for. Breaks LIMIT. Noticed by jobs::a_limit_is_never_exceeded
WITH pick AS MATERIALIZED (
  SELECT u.place, u.n, u.has_delay, t.id, t.lane, t.priority
  FROM unnest($1::text[], $2::bigint[], $3::boolean[]) WITH ORDINALITY AS u (name, n, has_delay, place)
  CROSS JOIN LATERAL (
    SELECT t.id, t.lane, t.priority
    FROM windlass.task AS t
    WHERE t.job = u.name AND t.state = 3 AND NOT t.parked
    ORDER BY t.priority DESC, t.id
    LIMIT u.n + 1 + $4
  ) AS t
), live AS MATERIALIZED (
  SELECT l.id
  FROM windlass.lane AS l
  WHERE l.id = ANY (ARRAY(SELECT DISTINCT pick.lane FROM pick)) AND windlass.is_live(l.queue, l.kind)
), ranked AS MATERIALIZED (
  SELECT
    p.id, p.n, p.has_delay, p.is_live,
    count(*) FILTER (WHERE p.is_live) OVER (PARTITION BY p.place ORDER BY p.priority DESC, p.id) AS rank
  FROM (SELECT pick.*, pick.lane = ANY (ARRAY(SELECT live.id FROM live)) AS is_live FROM pick) AS p
  ORDER BY p.place, p.priority DESC, p.id
), item AS MATERIALIZED (
  SELECT r.id, r.has_delay, r.is_live, CASE WHEN r.is_live THEN nextval('windlass.seq') END AS ready_seq
  FROM ranked AS r
  WHERE NOT r.is_live OR r.rank <= r.n + 1
)
UPDATE windlass.task AS t
SET
  state = CASE WHEN item.is_live THEN 1 ELSE 3 END,
  ready_seq = item.ready_seq,
  parked = NOT item.is_live,
  paced = CASE WHEN item.is_live AND item.has_delay THEN true END
FROM (SELECT item.* FROM item ORDER BY item.id) AS item
WHERE t.id = ANY (ARRAY[item.id]) AND t.state + 0 = 3
RETURNING t.job, t.lane, t.state
