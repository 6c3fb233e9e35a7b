-- Renews many workers. A row that another session has locked must not delay the others, so it is skipped and named.
{renew: skip = SKIP LOCKED}
