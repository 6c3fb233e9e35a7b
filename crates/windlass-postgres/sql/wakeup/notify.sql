-- Sends every worker a notification. $1 channel, $2 text.
SELECT pg_notify($1, $2)
