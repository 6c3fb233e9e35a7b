-- The id of the row that is so many rows below an id. $1 below which id, $2 how many rows, $3 the earliest end that
-- counts. Index: history_id, in order.
SELECT h.id FROM windlass.history AS h WHERE h.id < $1 AND h.ended_at >= $3 ORDER BY h.id DESC LIMIT 1 OFFSET $2
