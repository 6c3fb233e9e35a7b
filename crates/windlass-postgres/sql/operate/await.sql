-- A caller waits for the end of these tasks: they are kept although history is off. $1 ids, $2 for how long.
INSERT INTO windlass.awaited AS a (task, until)
SELECT u.id, windlass.now_ms() + $2 FROM unnest($1::bigint[]) AS u (id)
ORDER BY u.id
ON CONFLICT (task) DO UPDATE SET until = greatest(a.until, excluded.until)
