-- Asks to lead, or to go on leading: a new term if there is no leader. Answers the term, or until when another process
-- leads; and, for the leader, which duties have work. $1 the process that asks, $2 for how long, $3 age of the dead, $4
-- tasks kept before this are removed, $5 how far ahead there must be parts of the history. Index: task_dead,
-- key_expires, worker_ended, session_expires, keys of leader and part.
WITH clock AS MATERIALIZED (
  SELECT windlass.now_ms() AS now
), led AS (
  UPDATE windlass.leader AS r
  SET
    term = CASE WHEN r.holder = $1 AND r.expires_at > clock.now THEN r.term ELSE r.term + 1 END,
    holder = $1, expires_at = clock.now + $2
  FROM clock
  WHERE r.id = 1 AND (r.holder = $1 OR r.expires_at <= clock.now)
  RETURNING r.term
)
SELECT
  (SELECT term FROM led) AS term,
  (SELECT greatest(r.expires_at - clock.now, 0) FROM windlass.leader AS r WHERE r.id = 1) AS led_for_ms,
  clock.now,
  EXISTS (SELECT 1 FROM windlass.task AS t WHERE t.state = 6 AND t.ended_at <= clock.now - $3) AS has_dead,
  EXISTS (SELECT 1 FROM windlass.key AS k WHERE k.expires_at <= clock.now) AS has_keys,
  EXISTS (SELECT 1 FROM windlass.worker AS w WHERE w.ended_at <= clock.now - 86400000) AS has_tombstones,
  EXISTS (SELECT 1 FROM windlass.awaited AS a WHERE a.until <= clock.now) AS has_awaited,
  EXISTS (SELECT 1 FROM windlass.history_rest) AS has_rest,
  EXISTS (SELECT 1 FROM windlass.part AS p WHERE p.until_ms <= clock.now - $4) AS has_old_parts,
  NOT EXISTS (
    SELECT 1 FROM windlass.part AS p WHERE p.from_ms <= clock.now + $5 AND p.until_ms > clock.now + $5
  ) AS needs_parts,
  EXISTS (SELECT 1 FROM windlass.session AS s WHERE s.expires_at <= clock.now) AS has_sessions
FROM clock
