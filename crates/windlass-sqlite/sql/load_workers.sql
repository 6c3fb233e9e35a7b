-- Workers that had not ended when the store was last closed.
SELECT id FROM worker WHERE ended_at IS NULL
