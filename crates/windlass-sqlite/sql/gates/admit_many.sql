-- Makes up to 16 held tasks ready, each with its place in the ready line. Unused parameters are NULL.
-- Index: primary key.
UPDATE task
SET state = 1, ready_seq = CASE id
  WHEN ?1 THEN ?2 WHEN ?3 THEN ?4 WHEN ?5 THEN ?6 WHEN ?7 THEN ?8
  WHEN ?9 THEN ?10 WHEN ?11 THEN ?12 WHEN ?13 THEN ?14 WHEN ?15 THEN ?16
  WHEN ?17 THEN ?18 WHEN ?19 THEN ?20 WHEN ?21 THEN ?22 WHEN ?23 THEN ?24
  WHEN ?25 THEN ?26 WHEN ?27 THEN ?28 WHEN ?29 THEN ?30 WHEN ?31 THEN ?32
END
WHERE id IN (?1, ?3, ?5, ?7, ?9, ?11, ?13, ?15, ?17, ?19, ?21, ?23, ?25, ?27, ?29, ?31) AND state = 3
