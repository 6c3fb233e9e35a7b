-- Adds a bulk run. ?1 now, ?2 its text. Index: primary key, at its end.
INSERT INTO run (version, running, started_at, updated_at, body) VALUES (1, 1, ?1, ?1, ?2)
