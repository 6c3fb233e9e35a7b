-- Every paused queue. Index: primary key, in order.
SELECT queue FROM paused_queue ORDER BY queue
