-- Notes that a copy begins. $1 its source. Index: primary key.
INSERT INTO windlass.meta (name, value) VALUES ('copy_source', $1), ('copy_place', 0)
ON CONFLICT (name) DO NOTHING
RETURNING name
