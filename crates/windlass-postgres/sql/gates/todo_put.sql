-- Has admission look at jobs (0) or workflows (1). $1 kinds, $2 names.
INSERT INTO windlass.gate_todo (kind, key)
SELECT DISTINCT u.kind, u.key FROM unnest($1::smallint[], $2::text[]) AS u (kind, key)
