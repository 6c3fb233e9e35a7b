-- Forgets a token and its sessions. $1 id. A session that is added meanwhile stays without a token, and counts as none.
WITH gone AS (
  DELETE FROM windlass.session AS s WHERE s.token = $1
)
DELETE FROM windlass.token AS t WHERE t.id = $1 RETURNING t.id
