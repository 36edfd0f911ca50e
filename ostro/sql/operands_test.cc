#include "ostro/sql/operands.h"

#include <doctest/doctest.h>

#include "ostro/sql/constants.h"

namespace ostro::sql {
namespace {

// All that same_operands finds in a query.
std::string found(const std::string& query) {
  const std::vector<Token> tokens = tokens_of(query);
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (const std::string same = same_operands(tokens, i); !same.empty()) out += "[" + same + "]";
  return out;
}

TEST_CASE("a number divided by itself, or taken from itself, is found") {
  CHECK(found("SELECT loss / loss FROM chain") == "[loss / loss]");
  CHECK(found("SELECT c.loss/C . Loss FROM chain c") == "[c.loss / C.Loss]");
  CHECK(found("SELECT (loss) / ((loss)) FROM chain") == "[(loss) / ((loss))]");
  CHECK(found("SELECT max(loss) - MAX( loss ) FROM chain") == "[max(loss) - MAX(loss)]");
  CHECK(found("SELECT (a + b) % (a + b) FROM t") == "[(a+b) % (a+b)]");
  CHECK(found("SELECT 3 * a / a, x + a - a FROM t") == "[a / a][a - a]");
  CHECK(found("SELECT \"a\" / \"a\" FROM t") == "[\"a\" / \"a\"]");
  CHECK(found("SELECT a / \"A\", [a] - a, c.a % a FROM t c") == "[a / \"A\"][[a] - a][c.a % a]");
  CHECK(found("SELECT -a / a, x - a / a FROM t") == "[a / a][a / a]");
  for (const char* query :
       {"SELECT a / b, a - b, max(a) / min(a), t.a / u.a, -a FROM t", "SELECT b * a - a, a - a * b FROM t",
        "SELECT b / a / a FROM t", "SELECT (a + b) / (a - b) FROM t", "SELECT a / -a FROM t",
        "SELECT (a / b) FROM t", "SELECT \"a\" / \"b\" FROM t", "SELECT a - abs(a) FROM t",
        "SELECT b - a - a, -a - a, a - a || b, b || a / a, ~a - a FROM t",
        "SELECT (SELECT a / c.a FROM t LIMIT 1) FROM t c", "SELECT c.a / d.a FROM t c, t d"})
    CHECK_MESSAGE(found(query).empty(), query);
}

TEST_CASE("a number compared with itself is found") {
  CHECK(found("SELECT loss = loss, loss IS c.loss, (loss) >= loss FROM chain c") ==
        "[loss = loss][loss IS c.loss][(loss) >= loss]");
  CHECK(found("SELECT a <> a, a IS NOT a, a IS NOT DISTINCT FROM a, sum(a) == sum(a) FROM t") ==
        "[a <> a][a IS NOT a][a IS NOT DISTINCT FROM a][sum(a) == sum(a)]");
  CHECK(found("SELECT a = a = 1, NOT a < a, x AND a = a FROM t") == "[a = a][a < a][a = a]");
  for (const char* query :
       {"SELECT a = b, a IS NULL, a IS NOT NULL FROM t",
        "SELECT b + a = a, a = a + b, a = a < b, -a = a FROM t",
        "SELECT c.a = d.a FROM t c JOIN t d ON c.b = d.b", "SELECT b = a = a, b < a = a FROM t"})
    CHECK_MESSAGE(found(query).empty(), query);
}

TEST_CASE("every beginning and every end of a query can be read") {
  const std::string query = "SELECT max((a.b) / f(a.b)) - max((a.b) / f(a.b)) FROM (t)";
  for (size_t n = 0; n <= query.size(); ++n) {
    found(query.substr(0, n));
    found(query.substr(n));
  }
  CHECK(found("/") == "");
  CHECK(found(") / (") == "");
}

TEST_CASE("what does not depend on its columns is a constant") {
  const auto constants = constants_of("SELECT loss / loss FROM chain WHERE step / step = tokens");
  CHECK(constants == std::vector<QueryConstant>{{"loss / loss", ConstantUse::kComputes},
                                                {"step / step", ConstantUse::kChooses}});
  CHECK_FALSE(compute(constants_of("SELECT max(loss) / min(loss) FROM chain")));
  CHECK(compute(constants_of("SELECT sum(loss = loss) + (loss IS loss) FROM chain")));
  CHECK_FALSE(compute(constants_of("SELECT max(loss) FROM chain WHERE loss = loss")));
  CHECK_FALSE(compute(constants_of("SELECT tokens - loss - loss FROM chain")));
  CHECK_FALSE(division_hint("SELECT a /* x */ / b").empty());
  CHECK_FALSE(division_hint("SELECT a % b").empty());
  CHECK(division_hint("SELECT a /* / */ + '/' -- %\n FROM t").empty());
}

}  // namespace
}  // namespace ostro::sql
