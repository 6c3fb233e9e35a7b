PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 4000;
PRAGMA cache_size = -2048;
PRAGMA temp_store = MEMORY;
