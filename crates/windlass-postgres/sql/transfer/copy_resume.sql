-- Resumes the queues that were paused only for the copy. $1 those that stay paused.
DELETE FROM windlass.paused_queue AS p WHERE NOT p.queue = ANY ($1::text[])
