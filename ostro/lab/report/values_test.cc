// Queries of a report whose answer is no number: a division by 0, a number without end, a disguised constant.
#include "ostro/lab/report/values.h"

#include <doctest/doctest.h>

namespace ostro::lab {
namespace {

Database a_record() {
  auto db = Database::create(true);
  REQUIRE(db.ok());
  check_ok(db->insert("chain", {std::string("a"), int64_t{1}, 2.5, int64_t{3}, std::string("h")}));
  check_ok(db->insert("chain", {std::string("a"), int64_t{2}, 0.0, int64_t{3}, std::string("h")}));
  return std::move(*db);
}

Result<Values> ask(std::vector<Query> Plan::* which, const std::string& sql) {
  Plan plan;
  (plan.*which).push_back({"it", sql, "p.yaml:3"});
  return ask_all(a_record(), plan);
}

std::string error_of(std::vector<Query> Plan::* which, const std::string& sql) {
  const auto values = ask(which, sql);
  return values.ok() ? "no error" : values.error().message();
}

void has(const std::string& text, const std::string& part) {
  CHECK_MESSAGE(text.find(part) != std::string::npos, text);
}

TEST_CASE("a division by 0 is named, with the query and what to do") {
  const std::string by_zero = error_of(&Plan::queries, "SELECT 100 * loss / loss FROM chain WHERE step = 2");
  has(by_zero, "p.yaml:3: queries.it");
  has(by_zero, "a division by 0 gives NULL");
  has(by_zero, "WHERE divisor <> 0");
  const std::string no_row = error_of(&Plan::queries, "SELECT max(loss) FROM chain WHERE step = 9");
  has(no_row, "gives no value (NULL)");
  CHECK_MESSAGE(no_row.find("division") == std::string::npos, no_row);
  has(error_of(&Plan::figures, "SELECT run, step, tokens / loss FROM chain"), "a division by 0 gives NULL");
  // A cell of a table may lack a value.
  const auto table = ask(&Plan::tables, "SELECT run, tokens / loss FROM chain");
  REQUIRE_MESSAGE(table.ok(), table.error().message());
  CHECK(value_text(table->tables[0].rows.rows.at(1).at(1)).empty());
}

TEST_CASE("a number without end is no answer") {
  has(error_of(&Plan::queries, "SELECT loss * 1e308 * 1e308 FROM chain WHERE step = 1"), "no finite number");
  has(error_of(&Plan::tables, "SELECT loss * 1e308 * 1e308 FROM chain WHERE step = 1"), "no finite number");
}

TEST_CASE("a column divided by itself is a constant, and so declared") {
  const auto same = ask(&Plan::queries, "SELECT loss / loss FROM chain WHERE step = 1");
  REQUIRE_MESSAGE(same.ok(), same.error().message());
  CHECK(value_text(same->values[0].value) == "1.0");
  CHECK(same->values[0].number_class == NumberClass::kDeclared);
  CHECK(typed_in_queries(*same) == std::vector<std::string>{"queries.it: loss / loss"});
  const auto other = ask(&Plan::queries, "SELECT loss / tokens FROM chain WHERE step = 1");
  REQUIRE_MESSAGE(other.ok(), other.error().message());
  CHECK(other->values[0].number_class == NumberClass::kRecorded);
}

}  // namespace
}  // namespace ostro::lab
