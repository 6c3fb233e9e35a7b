-- Notes a part of the history. $1 name, $2 from, $3 until.
INSERT INTO windlass.part (name, from_ms, until_ms) VALUES ($1, $2, $3) ON CONFLICT (from_ms) DO NOTHING
