-- Retires a lane after this last task id, or brings it back (NULL). Index: primary key.
UPDATE lane SET retired = ?2 WHERE id = ?1
