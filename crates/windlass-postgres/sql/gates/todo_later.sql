-- Has admission look at jobs later, once for each time. $1 names, $2 times. Index: gate_todo_key.
INSERT INTO windlass.gate_todo (at, kind, key)
SELECT u.at, 0, u.key
FROM unnest($1::text[], $2::bigint[]) AS u (key, at)
WHERE NOT EXISTS (
  SELECT 1 FROM windlass.gate_todo AS g WHERE (g.kind > 1 OR g.at > 0) AND g.key = u.key AND g.kind = 0 AND g.at = u.at
)
