-- Forgets a part of the history. $1 name.
DELETE FROM windlass.part AS p WHERE p.name = $1
