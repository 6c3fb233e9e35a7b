-- Notifies one idle worker of another process that serves any of these lanes. $1 lanes, $2 channel, $3 the caller.
{ring: channel = $2, if = true, now = windlass.now_ms(), lanes = $1, listener = $3}
