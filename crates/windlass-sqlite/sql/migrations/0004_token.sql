-- Tokens of the API: what their bearers may do, and when that ends. Only a hash of the secret is kept.
CREATE TABLE token (
  id TEXT PRIMARY KEY,
  name TEXT,
  hash BLOB NOT NULL,
  scopes TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER
) STRICT, WITHOUT ROWID;
