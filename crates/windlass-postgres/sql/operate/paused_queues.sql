-- Queues that are paused.
SELECT p.queue FROM windlass.paused_queue AS p ORDER BY p.queue
