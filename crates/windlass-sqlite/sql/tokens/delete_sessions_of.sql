-- Ends every session of a token. Index: session_token.
DELETE FROM session WHERE token = ?1
