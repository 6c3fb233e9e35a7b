-- Makes room for one more session of a token: ends all but its newest ones. Index: session_token.
DELETE FROM session WHERE id IN (
  SELECT s.id FROM session AS s WHERE s.token = ?1
  ORDER BY s.created_at DESC, s.id DESC
  LIMIT -1 OFFSET ?2
)
