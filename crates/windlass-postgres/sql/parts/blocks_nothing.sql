-- Whether a task is not the one that blocks its workflow: that one must stay. :task. Index: primary key of workflow.
(
      :task.workflow IS NULL
      OR NOT EXISTS (SELECT 1 FROM windlass.workflow AS w WHERE w.name = :task.workflow AND w.blocked_by = :task.id)
    )
