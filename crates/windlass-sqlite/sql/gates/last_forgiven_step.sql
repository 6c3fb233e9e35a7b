-- The last step that somebody forgave. Scans: once, when the store is opened.
SELECT coalesce(max(forgiven_step), 0) FROM workflow
