-- Ends a registration. Index: primary key.
UPDATE worker SET ended_at = ?2, renewed_at = max(renewed_at, ?3) WHERE id = ?1 AND ended_at IS NULL
