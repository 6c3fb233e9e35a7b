-- Every lane. Index: primary key, in order.
SELECT id, queue, kind, retired FROM lane ORDER BY id
