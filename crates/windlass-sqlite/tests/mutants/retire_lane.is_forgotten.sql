-- Broken: a restart brings retired lanes back. Breaks BOUNDED. Noticed by lanes::a_retired_lane_stays_retired_after_a_restart
UPDATE lane SET retired = ?2 * 0 WHERE id = ?1
