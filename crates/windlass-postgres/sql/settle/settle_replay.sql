-- The receipt of a settler's last batch, also if its worker has left or died. Index: primary keys of receipt and
-- fenced. $1 worker, $2 settler.
SELECT r.batch_no, ARRAY(
  SELECT f.task FROM windlass.fenced AS f
  WHERE f.worker = r.worker AND f.settler_no = r.settler_no AND f.batch_no = r.batch_no
)
FROM windlass.receipt AS r
WHERE r.worker = $1 AND r.settler_no = $2
