-- Removes sessions that have ended. Index: session_expires.
DELETE FROM session WHERE id IN (
  SELECT s.id FROM session AS s WHERE s.expires_at <= ?1
  ORDER BY s.expires_at
  LIMIT ?2
)
