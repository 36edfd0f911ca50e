#include "ostro/sql/sums.h"

#include <sqlite3.h>

#include <cmath>
#include <cstdint>
#include <new>

#include "ostro/base/check.h"
#include "ostro/sql/exact_sum.h"

namespace ostro::sql {
namespace {

struct Sum {
  ExactSum exact;
  int64_t integers = 0, count = 0;
  bool has_real = false, overflow = false, wrong = false;
};

// SQLite gives memory of zeros for each group; it holds a pointer to the sum.
Sum** place(sqlite3_context* context, int size) {
  return static_cast<Sum**>(sqlite3_aggregate_context(context, size));
}

void add(sqlite3_context* context, int, sqlite3_value** values) {
  Sum** at = place(context, sizeof(Sum*));
  if (at == nullptr) return sqlite3_result_error_nomem(context);
  if (*at == nullptr) *at = new Sum;
  Sum& sum = **at;
  const int type = sqlite3_value_type(values[0]);
  if (type == SQLITE_NULL) return;
  ++sum.count;
  if (type == SQLITE_INTEGER) {
    const int64_t value = sqlite3_value_int64(values[0]);
    sum.overflow |= __builtin_add_overflow(sum.integers, value, &sum.integers);
    // Two halves, each of which a double holds.
    sum.exact.add(static_cast<double>(value >> 32) * 4294967296.0);
    sum.exact.add(static_cast<double>(value & 0xffffffff));
  } else if (type == SQLITE_FLOAT && std::isfinite(sqlite3_value_double(values[0]))) {
    sum.has_real = true;
    sum.exact.add(sqlite3_value_double(values[0]));
  } else {
    sum.wrong = true;
  }
}

enum class Answer { kSum, kMean, kTotal };

template <Answer kAnswer>
void finish(sqlite3_context* context) {
  Sum** at = place(context, 0);
  const Sum sum = at != nullptr && *at != nullptr ? **at : Sum();
  if (at != nullptr) delete *at;
  if (sum.wrong) return sqlite3_result_error(context, "a sum is of numbers that are finite", -1);
  if (sum.count == 0 && kAnswer != Answer::kTotal) return sqlite3_result_null(context);
  if (kAnswer == Answer::kSum && !sum.has_real) {
    if (sum.overflow) return sqlite3_result_error(context, "integer overflow", -1);
    return sqlite3_result_int64(context, sum.integers);
  }
  const double total = sum.exact.rounded();
  if (std::isinf(total)) return sqlite3_result_error(context, "the sum is too large for a number", -1);
  sqlite3_result_double(context, kAnswer == Answer::kMean ? total / static_cast<double>(sum.count) : total);
}

}  // namespace

void add_exact_sums(sqlite3* db) {
  const auto define = [db](const char* name, void (*last)(sqlite3_context*)) {
    OSTRO_CHECK(sqlite3_create_function(db, name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, nullptr,
                                        add, last) == SQLITE_OK,
                "SQLite does not take the function {}", name);
  };
  define("sum", finish<Answer::kSum>);
  define("avg", finish<Answer::kMean>);
  define("total", finish<Answer::kTotal>);
}

}  // namespace ostro::sql
