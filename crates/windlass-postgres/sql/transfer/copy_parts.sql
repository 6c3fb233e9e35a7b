-- The existing parts of the history, in order.
SELECT p.from_ms, p.until_ms FROM windlass.part AS p ORDER BY p.from_ms
