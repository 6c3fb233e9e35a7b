-- Adds a session of a token that exists and has not expired, and ends the oldest ones of the token over the limit. $1
-- id, $2 token, $3 hash, $4 for how long, $5 how many others stay. Index: session_token. Callers that add at once may
-- leave a few sessions more until the next one.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), owner AS MATERIALIZED (
  SELECT t.id, t.name, t.hash, t.scopes, t.created_at, t.expires_at, t.bound
  FROM windlass.token AS t
  WHERE t.id = $2 AND (t.expires_at IS NULL OR t.expires_at > windlass.now_ms())
), old AS (
  DELETE FROM windlass.session AS s
  USING (
    SELECT o.id FROM windlass.session AS o WHERE o.token = $2
    ORDER BY o.created_at DESC, o.id DESC
    OFFSET $5
  ) AS surplus
  WHERE s.id = surplus.id
), added AS (
  INSERT INTO windlass.session AS s (id, token, hash, created_at, expires_at, seen_at)
  SELECT $1, owner.id, $3, clock.now, least(clock.now + $4, owner.expires_at), clock.now
  FROM owner CROSS JOIN clock
  ON CONFLICT (id) DO NOTHING
  RETURNING s.id, s.hash, s.created_at, s.expires_at, s.seen_at
)
SELECT
  owner.id, owner.name, owner.hash, owner.scopes, owner.created_at, owner.expires_at, false, owner.bound,
  added.id, added.hash, added.created_at, added.expires_at, added.seen_at, clock.now
FROM added CROSS JOIN owner CROSS JOIN clock
