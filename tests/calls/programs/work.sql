-- Work for all of SQLite: the parser, the planner, trees, triggers, aggregates, windows, expressions, rollback.
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
CREATE TABLE log(n INTEGER);
CREATE INDEX by_b ON t(b, c);
CREATE TRIGGER told AFTER UPDATE ON t BEGIN INSERT INTO log VALUES (new.a); END;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120) INSERT INTO t SELECT i, printf('%03d', i * 7 % 120), i / 3.0 FROM n;
UPDATE t SET c = c * 2 WHERE a % 10 = 0;
BEGIN; DELETE FROM t WHERE a > 50; ROLLBACK;
SELECT count(*), sum(c), min(b), max(b) FROM t WHERE b BETWEEN '010' AND '099';
SELECT a, row_number() OVER (ORDER BY b DESC) FROM t ORDER BY b DESC LIMIT 3;
SELECT x.a, y.a FROM t x JOIN t y ON x.b = printf('%03d', y.a) WHERE x.a < 4 ORDER BY 1;
SELECT count(*) FROM log;
SELECT upper(replace('fathom', 'a', 'b')) || hex(zeroblob(2)), json_extract('{"a":[1,2]}', '$.a[1]');
