-- Has the starts of a job's ready tasks noticed: it has a delay from now on. $1 name. Index: task_job.
UPDATE windlass.task AS t SET paced = true WHERE t.job = $1 AND t.state = 1
