//! The schema that the migrations make, compared with the copy for readers.

use crate::place::Place;

/// Everything in a schema, one line each, from the server's own catalogs; without the parts of the history,
/// because their names contain times.
const LINES: &str = r"
WITH space AS (
  SELECT oid, nspname FROM pg_namespace WHERE nspname = $1
), relation AS (
  SELECT c.oid, c.relname, c.relkind, c.relpersistence, c.reloptions, c.relpartbound
  FROM pg_class AS c JOIN space ON space.oid = c.relnamespace
  WHERE c.relname !~ '^history_[0-9]+'
), line AS (
  SELECT c.relname AS owner, 0 AS part, 0 AS place, concat_ws(' ',
    CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED' END, 'TABLE', c.relname,
    CASE WHEN c.relkind = 'p' THEN 'PARTITION BY ' || pg_get_partkeydef(c.oid) END,
    pg_get_expr(c.relpartbound, c.oid), 'WITH (' || array_to_string(c.reloptions, ', ') || ')') AS text
  FROM relation AS c WHERE c.relkind IN ('r', 'p')
  UNION ALL
  SELECT c.relname, 1, a.attnum, concat_ws(' ', ' ', a.attname, format_type(a.atttypid, a.atttypmod),
    CASE WHEN a.attnotnull THEN 'NOT NULL' END, CASE a.attidentity WHEN 'a' THEN 'GENERATED ALWAYS AS IDENTITY' END,
    'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid))
  FROM relation AS c
  JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
  WHERE c.relkind IN ('r', 'p')
  UNION ALL
  SELECT c.relname, 2, 0, concat_ws(' ', '  CONSTRAINT', k.conname, pg_get_constraintdef(k.oid))
  FROM relation AS c JOIN pg_constraint AS k ON k.conrelid = c.oid AND k.contype <> 'n'
  UNION ALL
  SELECT t.relname, 3, 0, '  ' || replace(pg_get_indexdef(i.indexrelid), $1 || '.', '')
  FROM pg_index AS i JOIN relation AS c ON c.oid = i.indexrelid JOIN relation AS t ON t.oid = i.indrelid
  UNION ALL
  SELECT c.relname, 4, 0, 'SEQUENCE ' || c.relname FROM relation AS c WHERE c.relkind = 'S'
  UNION ALL
  SELECT p.proname, 5, 0, concat_ws(' ',
    'FUNCTION', p.proname || '(' || pg_get_function_arguments(p.oid) || ')', 'RETURNS', pg_get_function_result(p.oid),
    'LANGUAGE', l.lanname, CASE p.provolatile WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END,
    CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END, 'SET ' || array_to_string(p.proconfig, ', '))
  FROM pg_proc AS p JOIN space ON space.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
)
SELECT line.text FROM line ORDER BY line.owner, line.part, line.place, line.text
";

#[tokio::test]
async fn the_schema_is_the_one_in_schema_sql() {
    let place = Place::new();
    drop(place.make().await);
    let rows = place.client().await.query(LINES, &[&place.schema]).await.unwrap();
    let made: String = rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema.sql");
    if std::env::var_os("WINDLASS_BLESS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(made, kept, "run the test with WINDLASS_BLESS=1 to write schema.sql again");
}
