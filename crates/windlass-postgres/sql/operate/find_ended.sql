-- Which of some tasks have not ended, and which are kept. $1 ids, $2 when the first of them was enqueued. Index:
-- primary key, history_id.
SELECT t.id, t.state FROM windlass.task AS t WHERE t.id = ANY ($1)
UNION ALL
SELECT h.id, h.state FROM windlass.history AS h WHERE h.id = ANY ($1) AND h.ended_at >= $2
