-- Retires a lane (1), or brings it back (0). Index: primary key.
UPDATE lane SET retired = ?2 WHERE id = ?1
