-- Sessions of browsers: each was started with a token. Only a hash of the secret is kept. Programs that do not know
-- this table leave the sessions of a token that they remove: a session without a token counts as none.
CREATE TABLE session (
  id TEXT PRIMARY KEY,
  token TEXT NOT NULL,
  hash BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_token ON session (token, created_at);
CREATE INDEX session_expires ON session (expires_at);
