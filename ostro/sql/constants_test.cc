#include "ostro/sql/constants.h"

#include <doctest/doctest.h>

namespace ostro::sql {
namespace {

// Each constant with a letter for its use: n a part of the number, c chooses, s scales.
std::string uses(const std::string& query) {
  std::string out;
  for (const QueryConstant& c : constants_of(query))
    out += (out.empty() ? "" : " ") + c.text + ":" + "ncs"[static_cast<size_t>(c.use)];
  return out;
}

TEST_CASE("a constant that can be a part of the answer is told from one that chooses rows") {
  CHECK(uses("SELECT 0.5 + 0*loss FROM chain") == "0.5:n 0:n");
  CHECK(uses("SELECT min(loss) FROM chain WHERE step >= 17 AND run = 'a[rate=0.1]' LIMIT 1") ==
        "17:c 'a[rate=0.1]':c 1:c");
  CHECK(uses("SELECT loss FROM chain WHERE step = (SELECT max(step) - 5 FROM chain)") == "5:c");
  CHECK(uses("SELECT x FROM (SELECT 0.5 AS x FROM chain WHERE step = 3)") == "0.5:n 3:c");
  CHECK(uses("WITH t AS (SELECT .5e1 + 0x10 AS x FROM chain) SELECT x FROM t ORDER BY 1") ==
        ".5e1:n 0x10:n 1:c");
  CHECK(uses("SELECT loss FROM chain WHERE step = 1 UNION SELECT 7 FROM chain") == "1:c 7:n");
  CHECK(uses("SELECT a.x FROM t a JOIN (SELECT 3 AS k FROM u) b ON b.k = 4") == "3:n 4:c");
  CHECK(uses("SELECT max(step) FILTER (WHERE step < 9) FROM chain GROUP BY run HAVING count(*) > 2") ==
        "9:c 2:c");
  CHECK(uses("SELECT true + loss FROM chain") == "true:n");
  CHECK(uses("SELECT loss -- 5\n /* 6 */ FROM chain") == "");
}

TEST_CASE("a name that is also a word of SQL, and a table behind a join, hide no constant") {
  CHECK(uses("SELECT q.offset + 0.73 FROM (SELECT bits_per_byte AS offset FROM evaluations) q") == "0.73:n");
  for (const char* word : {"offset", "partition", "by", "rows", "range", "over", "filter", "window", "like",
                           "glob", "with", "replace", "first", "current", "exclude", "groups", "ties"}) {
    const std::string name = word;
    CAPTURE(name);
    CHECK(uses("SELECT q." + name + " + 0.73 FROM t q") == "0.73:n");
    CHECK(uses("SELECT " + name + " + 0.73 FROM t") == "0.73:n");
    CHECK(uses("SELECT " + name + " x, 0.73 FROM t") == "0.73:n");
    CHECK(uses("SELECT (" + name + "), 0.73 FROM t AS " + name) == "0.73:n");
  }
  CHECK(uses("SELECT partition by, 0.73 FROM t") == "0.73:n");  // it is called "by"
  CHECK(uses("SELECT (SELECT partition by FROM t), 0.73 FROM t") == "0.73:n");
  CHECK(uses("SELECT c.k FROM t a JOIN t b ON a.x = 5 , (SELECT 0.73 AS k) c") == "5:c 0.73:n");
  CHECK(uses("SELECT c.k FROM t a JOIN t b ON max(a.x, 5) > 0 LEFT JOIN (SELECT 0.73 AS k) c ON 1") ==
        "5:c 0:c 0.73:n 1:c");
  // The clauses themselves.
  CHECK(uses("SELECT loss FROM t ORDER BY step + 1 LIMIT 2 OFFSET 3") == "1:c 2:c 3:c");
  CHECK(uses("SELECT sum(loss) OVER (PARTITION BY step % 7 ORDER BY step), 0.5 FROM t") == "7:c 0.5:n");
}

TEST_CASE("values that are chosen within the answer") {
  CHECK(uses("SELECT sum(CASE WHEN step <= 100 THEN loss END) FROM chain") == "100:c");
  CHECK(uses("SELECT sum(CASE reason WHEN 'a1' THEN rows ELSE 0 END) FROM left_out") == "'a1':c 0:n");
  CHECK(uses("SELECT iif(step BETWEEN 2 AND 3, loss, 0.5) FROM chain") == "2:c 3:c 0.5:n");
  CHECK(uses("SELECT round(loss, 3), substr(hash, 1, 8), count(1) FROM chain") == "3:c 1:c 8:c 1:c");
  CHECK(uses("SELECT round(0.5 + 0 * loss, 3) FROM chain") == "0.5:n 0:n 3:c");
  CHECK(uses("SELECT max(step IN (1, 2)) FROM chain") == "1:c 2:c");
}

TEST_CASE("a power of ten beside something that is no constant is another unit") {
  CHECK(uses("SELECT 100 * (a - b) / b FROM t") == "100:s");
  CHECK(uses("SELECT sum(tokens) / 1e6 FROM t") == "1e6:s");
  CHECK(uses("SELECT 1.0 * a / b FROM t") == "1.0:s");
  for (const char* query : {"SELECT 10 * 10 + a - a FROM t", "SELECT a + 10 FROM t", "SELECT 10 - a FROM t",
                            "SELECT 30 * a FROM t", "SELECT a * 10 * 10 FROM t",
                            "SELECT (10) * (10) + a FROM t", "SELECT 0x10 * a FROM t", "SELECT 10 FROM t"})
    CHECK_MESSAGE(compute(constants_of(query)), query);
}

TEST_CASE("texts count where a number can be made of them") {
  CHECK(uses("SELECT printf('%.3f', loss), 'first', name || ' of ' FROM t") == "");
  CHECK(uses("SELECT printf('0.5%.0s', loss) FROM t") == "'0.5%.0s':n");
  CHECK(uses("SELECT '0.5' + 0 * loss, length('aa') + 0 FROM t") == "'0.5':n 0:n 'aa':n 0:n");
  CHECK(uses("SELECT replace(name, '0.1', '') FROM t") == "'0.1':n");
  CHECK(uses("SELECT x'30', 'it''s 5', \"a 5\", [b 6], `c 7` FROM t") == "x'30':n 'it''s 5':n");
}

TEST_CASE("every beginning of a query can be read") {
  const std::string query =
      "WITH a AS (SELECT 1e5 x'3' 'a''b' [c] \"d\" /* e */ -- f\n) SELECT 0x1f, printf('%d', 2) WHERE 3";
  for (size_t n = 0; n <= query.size(); ++n) constants_of(query.substr(0, n));
  CHECK(uses(")) 5 (") == "5:n");
}

}  // namespace
}  // namespace ostro::sql
