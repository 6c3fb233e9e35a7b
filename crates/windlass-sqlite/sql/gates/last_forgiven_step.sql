-- The highest step that an operator forgave. Scans: once, when the store is opened.
SELECT coalesce(max(forgiven_step), 0) FROM workflow
