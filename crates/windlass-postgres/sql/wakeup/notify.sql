-- Tells every worker something. $1 channel, $2 what.
SELECT pg_notify($1, $2)
