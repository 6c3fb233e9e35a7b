-- Notes how far a copy has come, unless another process took it on: then nothing is answered. $1 place before, $2 place after.
-- Index: primary key.
UPDATE windlass.meta AS m SET value = $2 WHERE m.name = 'copy_place' AND m.value = $1 RETURNING m.name
