-- What is noted of a settler's last batch. Index: primary keys of receipt and fenced. $1 worker, $2 settler.
SELECT r.batch_no, ARRAY(
  SELECT f.task FROM windlass.fenced AS f
  WHERE f.worker = r.worker AND f.settler_no = r.settler_no AND f.batch_no = r.batch_no
)
FROM windlass.receipt AS r
JOIN windlass.worker AS w ON w.id = r.worker AND w.ended_at IS NULL
WHERE r.worker = $1 AND r.settler_no = $2
