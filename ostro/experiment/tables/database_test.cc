#include "ostro/experiment/tables/database.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ostro/experiment/tables/replayed.h"
#include "ostro/sql/exact_sum.h"

namespace ostro::lab {
namespace {

double exact(const std::vector<double>& values) {
  sql::ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.rounded();
}

Database losses(const std::vector<double>& values) {
  auto db = Database::create(true);
  REQUIRE(db.ok());
  int64_t step = 0;
  for (const double value : values)
    check_ok(db->insert("chain", {std::string("a"), ++step, value, int64_t{3}, std::string("h")}));
  check_ok(db->insert(
      "sessions", {std::string("a"), int64_t{1}, Value(), Value(), Value(), Value(), Value(), 2.5, Value()}));
  check_ok(db->insert("lab", {std::string("l"), std::string("q"), std::string("p"), Value()}));
  return std::move(*db);
}

TEST_CASE("a query that would run for ever ends with an error") {
  const Database db = losses(std::vector<double>(300, 1.5));
  const auto forever = db.select("SELECT count(*) FROM chain a, chain b, chain c, chain d, chain e");
  REQUIRE_FALSE(forever.ok());
  CHECK_MESSAGE(
      forever.error().message().find("takes too long: more than 100 million steps") != std::string::npos,
      forever.error().message());
  const auto short_one =
      db.select("SELECT count(*) FROM chain a, chain b");  // and the next one is not stopped
  REQUIRE(short_one.ok());
  CHECK(value_text(short_one->rows[0][0]) == "90000");
}

TEST_CASE("an exact sum is rounded once") {
  CHECK(exact({}) == 0);
  CHECK(exact({1e16, 1, -1e16}) == 1);
  CHECK(exact({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}) == 1);
  CHECK(exact({1e100, 1, -1e100, 1e-3}) == 1.001);
  CHECK(exact({9007199254740992, 1}) == 9007199254740992);          // a tie goes to even,
  CHECK(exact({9007199254740992, 1, 1e-300}) == 9007199254740994);  // and what is more does not
  CHECK(exact({-9007199254740992, -1, -1e-300}) == -9007199254740994);
  CHECK(exact({9007199254740992, 3, -1}) == 9007199254740994);
  CHECK(exact({-1, 0.5, 0.25}) == -0.25);
}

TEST_CASE("partial sums beyond the largest double, and below the smallest normal one, are exact") {
  constexpr double kMost = std::numeric_limits<double>::max(),
                   kLeast = std::numeric_limits<double>::denorm_min();
  CHECK(exact({kMost, kMost, -kMost}) == kMost);
  CHECK(exact({kMost, kMost, 1, -kMost, -kMost}) == 1);
  CHECK(exact({-kMost, -kMost, -kMost, kMost, kMost}) == -kMost);
  CHECK(std::isinf(exact({kMost, kMost})));
  CHECK(exact({kLeast, kLeast, kLeast}) == 3 * kLeast);
  CHECK(exact({kMost, -kLeast, -kMost}) == -kLeast);
  const Database db = losses({kMost, kMost, -kMost});
  CHECK(value_text(db.select("SELECT sum(loss) FROM chain")->rows[0][0]) == value_text(kMost));
  const auto too_large = db.select("SELECT sum(loss) FROM chain WHERE step < 3");
  REQUIRE_FALSE(too_large.ok());
  CHECK(too_large.error().message().find("too large for a number") != std::string::npos);
}

TEST_CASE("the order of what is summed changes no bit") {
  std::mt19937_64 random(7);
  std::vector<double> values;
  for (int i = 0; i < 500; ++i)
    values.push_back(std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 120) - 60) *
                     (i % 2 == 0 ? 1 : -1));
  const double sum = exact(values);
  double plain = 0, plain_again = 0;
  for (const double v : values) plain += v;
  std::shuffle(values.begin(), values.end(), random);
  for (const double v : values) plain_again += v;
  CHECK(exact(values) == sum);
  CHECK(plain != plain_again);  // so the test can fail
}

TEST_CASE("values, exact sums and the class of what was read") {
  const Database db = losses({1e16, 1, -1e16});
  const auto ask = [&](const std::string& sql) {
    const auto rows = db.select(sql);
    REQUIRE_MESSAGE(rows.ok(), rows.error().message());
    return value_text(rows->rows.at(0).at(0)) + " " + class_name(rows->number_class);
  };
  CHECK(ask("SELECT sum(loss) FROM chain") == "1.0 recorded");
  CHECK(ask("SELECT avg(loss) FROM chain WHERE step = 2") == "1.0 recorded");
  CHECK(ask("SELECT sum(tokens) FROM chain") == "9 recorded");
  CHECK(ask("SELECT total(tokens) FROM chain WHERE step > 5") == "0.0 recorded");
  CHECK(ask("SELECT max(loss) - (SELECT seconds FROM sessions) * 0 FROM chain") == "1e+16 measured");
  CHECK(ask("SELECT count(*) FROM chain, sessions") == "3 measured");
  CHECK(ask("WITH t AS (SELECT seconds AS s FROM sessions) SELECT s FROM t") == "2.5 measured");
  CHECK(ask("WITH t AS (SELECT step FROM chain) SELECT count(*) FROM t") == "3 recorded");
  CHECK(ask("SELECT count(*) FROM chain, lab WHERE question = 'q'") == "3 declared");
  CHECK(ask("SELECT 5") == "5 declared");
  CHECK(ask("SELECT 0.987 FROM chain LIMIT 1") == "0.987 declared");
  CHECK(ask("SELECT 5 FROM sessions") == "5 measured");
  CHECK(ask("SELECT Count(*) FROM chain") == "3 recorded");
  CHECK(ask("WITH t AS (SELECT 1 FROM chain) SELECT count(*) FROM t") == "3 declared");
}

TEST_CASE("a constant of a query that can be a part of the answer is declared, whatever stands beside it") {
  const Database db = losses({2, 4});
  const auto class_of = [&](const std::string& sql) {
    const auto rows = db.select(sql);
    REQUIRE_MESSAGE(rows.ok(), rows.error().message());
    CHECK(db.reads(sql)->number_class == rows->number_class);
    return std::string(class_name(rows->number_class));
  };
  for (const char* sql :
       {"SELECT 0.5 + 0 * loss FROM chain", "SELECT max(loss) - 1 FROM chain",
        "WITH t AS (SELECT 0.5 AS x FROM chain) SELECT x FROM t",
        "SELECT x FROM chain JOIN (SELECT 7 AS x FROM lab) ON step = 1", "SELECT '0.5' + 0 * loss FROM chain",
        "SELECT iif(step = 1, 0.5, loss) FROM chain", "SELECT true + 0 * loss FROM chain"})
    CHECK_MESSAGE(class_of(sql) == "declared", sql);
  for (const char* sql :
       {"SELECT min(loss) FROM chain WHERE step > 1 LIMIT 1", "SELECT 100 * loss FROM chain",
        "SELECT round(avg(loss), 3) FROM chain", "SELECT printf('%.3f', loss) FROM chain",
        "SELECT loss FROM chain WHERE step = (SELECT max(step) - 1 FROM chain)"})
    CHECK_MESSAGE(class_of(sql) == "recorded", sql);
  CHECK(class_of("SELECT 0.5 + 0 * seconds FROM sessions") == "measured");
  CHECK(db.select("SELECT loss FROM chain WHERE step > 1")->constants ==
        std::vector<sql::QueryConstant>{{"1", sql::ConstantUse::kChooses}});
  const auto quoted = db.select("SELECT \"0.5\" + 0 * loss FROM chain");
  REQUIRE_FALSE(quoted.ok());
  CHECK(quoted.error().message().find("0.5") != std::string::npos);
}

// Two runs on a store, each with an evaluation; `replayed` are the steps that were done again.
Database evaluated(const std::vector<std::pair<std::string, int64_t>>& replayed) {
  auto db = Database::create(true);
  REQUIRE(db.ok());
  const auto add = [&](const char* name, const char* kind, const char* input) {
    check_ok(db->insert("steps", {std::string(name), std::string(kind), std::string("f"), std::string("c")}));
    if (*input != 0)
      check_ok(db->insert("inputs", {std::string(name), std::string("of"), std::string(input)}));
  };
  add("texts", "source", "");
  add("rows", "tokens", "texts");
  for (const char* run : {"a", "b"}) {
    add(run, "train", "rows");
    check_ok(db->insert("chain", {std::string(run), int64_t{1}, 2.5, int64_t{3}, std::string("h")}));
  }
  add("score", "eval", "a");
  check_ok(db->insert("evaluations", {std::string("score"), std::string("a"), int64_t{1}, std::string("s"),
                                      2.25, Value(), int64_t{3}}));
  check_ok(db->insert(
      "sessions", {std::string("a"), int64_t{1}, Value(), Value(), Value(), Value(), Value(), 2.5, Value()}));
  for (const auto& [name, whole] : replayed)
    check_ok(db->insert("replays", {name, std::string("this lab"), std::string("done again"), whole}));
  return std::move(*db);
}

TEST_CASE("a number is replayed when all steps that it stands on were done again, whole") {
  const auto ask = [](const Database& db, const char* sql) {
    const auto rows = ask_record(db, sql);
    REQUIRE_MESSAGE(rows.ok(), rows.error().message());
    return std::string(class_name(rows->number_class));
  };
  constexpr const char *kScore = "SELECT min(loss) FROM evaluations", *kLoss = "SELECT min(loss) FROM chain";
  CHECK(ask(evaluated({}), kScore) == "recorded");
  const Database some = evaluated({{"rows", 1}, {"a", 1}, {"score", 1}});
  CHECK(ask(some, kScore) == "replayed");
  CHECK(ask(some, kLoss) == "recorded");  // the table has rows of b
  CHECK(ask(some, "SELECT min(e.loss - c.loss) FROM evaluations e, chain c") == "recorded");
  CHECK(ask(evaluated({{"a", 1}, {"score", 1}}), kScore) == "recorded");               // not its store
  CHECK(ask(evaluated({{"rows", 1}, {"a", 0}, {"score", 1}}), kScore) == "recorded");  // a part of the run
  const Database all = evaluated({{"rows", 1}, {"a", 1}, {"b", 1}, {"b", 0}, {"score", 1}});
  CHECK(ask(all, kLoss) == "replayed");
  CHECK(ask(all, "SELECT count(*) FROM steps") == "replayed");
  CHECK(ask(all, "SELECT sum(whole) FROM replays") == "recorded");
  CHECK(ask(all, "SELECT loss + 0.5 FROM chain") == "declared");
  CHECK(ask(all, "SELECT c.loss FROM chain c, lab WHERE question = 'q'") == "declared");
  CHECK(ask(all, "SELECT loss + 0 * (SELECT seconds FROM sessions) FROM chain") == "measured");
}

TEST_CASE("a query can read the record, and nothing else") {
  const Database db = losses({1, 2});
  for (const char* sql :
       {"SELECT random()",
        "SELECT hex(randomblob(4))",
        "SELECT current_timestamp",
        "SELECT date('now')",
        "SELECT julianday()",
        "SELECT name FROM sqlite_master",
        "SELECT count(*) FROM sqlite_master",
        "DELETE FROM chain",
        "DROP TABLE chain",
        "INSERT INTO chain SELECT * FROM chain",
        "UPDATE chain SET loss = 0 RETURNING loss",
        "PRAGMA page_size",
        "ATTACH 'x' AS y",
        "SELECT * FROM pragma_table_info('chain')",
        "SELECT value FROM json_each('[1]')",
        "SELECT load_extension('x')",
        "SELECT group_concat(step) FROM chain",
        "SELECT step FROM chain ORDER BY random()",
        "SELECT 1; SELECT 2",
        "EXPLAIN SELECT 1",
        "EXPLAIN QUERY PLAN SELECT loss FROM chain",
        "SELECT 1; DROP TABLE chain",
        "SELECT sum(run) FROM chain",
        "SELECT lost FROM chain",
        "",
        "BEGIN",
        "VACUUM INTO 'x'",
        "CREATE TEMP TABLE t (x)",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) FROM c"}) {
    INFO(std::string(sql));
    CHECK_FALSE(db.select(sql).ok());
  }
  CHECK(value_text(db.select("SELECT count(*) FROM chain")->rows[0][0]) == "2");
  // SQLite gives NULL for a text beyond the limit of one value.
  CHECK(value_text(db.select("SELECT length(printf('%900000000d', 1))")->rows[0][0]).empty());
}

TEST_CASE("the same rows give the same bytes, other rows others") {
  const std::string bytes = *losses({1, 2}).bytes();
  CHECK(bytes.substr(0, 15) == "SQLite format 3");
  CHECK(*losses({1, 2}).bytes() == bytes);
  CHECK(*losses({1, std::nextafter(2.0, 3.0)}).bytes() != bytes);
}

}  // namespace
}  // namespace ostro::lab
