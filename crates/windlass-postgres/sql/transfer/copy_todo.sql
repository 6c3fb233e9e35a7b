-- Has admission look at all jobs and workflows once the first worker registers. Scans: once for a copy.
INSERT INTO windlass.gate_todo (kind, key)
SELECT 0, j.name FROM windlass.job AS j
UNION
SELECT 0, t.job FROM windlass.task AS t WHERE t.job IS NOT NULL AND t.state <> 6
UNION
SELECT 1, w.name FROM windlass.workflow AS w
UNION
SELECT 1, t.workflow FROM windlass.task AS t WHERE t.workflow IS NOT NULL AND t.state <> 6
