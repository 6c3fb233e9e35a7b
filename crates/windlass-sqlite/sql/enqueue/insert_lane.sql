-- A new lane. Index: primary key and the unique pair.
INSERT INTO lane (id, queue, kind) VALUES (?1, ?2, ?3)
