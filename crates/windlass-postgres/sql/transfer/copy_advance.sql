-- Notes how far a copy has come. Answers nothing if another process has gone on with it. $1 position before, $2
-- position after. Index: primary key.
UPDATE windlass.meta AS m SET value = $2 WHERE m.name = 'copy_place' AND m.value = $1 RETURNING m.name
