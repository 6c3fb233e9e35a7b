-- Figures that would cost a scan. Index: primary key.
UPDATE figure SET last_id = ?1, history_rows = ?2, history_bytes = ?3 WHERE id = 1
