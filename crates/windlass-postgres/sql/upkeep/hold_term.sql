-- Keeps a term from ending while its leader writes; nothing if the term has ended. $1 term, $2 the leader. Index:
-- primary key.
SELECT r.term FROM windlass.leader AS r
WHERE r.id = 1 AND r.term = $1 AND r.holder = $2 AND r.expires_at > windlass.now_ms()
FOR SHARE
