-- Every lane. Index: primary key, in order.
SELECT id, queue, kind FROM lane ORDER BY id
