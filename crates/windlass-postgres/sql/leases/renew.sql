-- Renews one worker. Waits if another session has locked its row.
{renew: skip = }
