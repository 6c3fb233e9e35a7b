-- The store's clock.
SELECT windlass.now_ms()
