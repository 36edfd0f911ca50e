// constants_of: the numbers and texts that stand in a SELECT, and what each of them can do to its answer. A
// number of a report that is made of them was typed by hand, whatever columns stand beside them. Pure
// functions.
#pragma once

#include <string>
#include <vector>

namespace ostro::sql {

// What a constant can do to the answer.
enum class ConstantUse {
  kComputes,  // it can be a part of the answer: 0.5 in "SELECT 0.5 + 0 * loss"
  // It says which rows or values are taken, or how they are written: in WHERE, ON, GROUP BY, HAVING, ORDER BY
  // and LIMIT, beside a comparison, behind WHEN, the digits of round(), the place in substr(), count(1).
  kChooses,
  kScales,  // a power of ten that multiplies or divides something else: another unit
};

struct QueryConstant {
  std::string text;  // as it stands in the query
  ConstantUse use = ConstantUse::kComputes;
  bool operator==(const QueryConstant&) const = default;
};

// The constants of a SELECT that SQLite takes, in their order. An operation that gives the same number
// whatever its columns hold is one, too: loss / loss (same_operands). Texts without a digit that are no
// operand of a function that makes numbers of texts, and formats of printf() whose digits are those of its
// conversions, are left out: no number can be made of them. Of what is no SELECT it gives something, and
// never fails.
std::vector<QueryConstant> constants_of(const std::string& query);

// Whether one of them can be a part of the answer.
bool compute(const std::vector<QueryConstant>& constants);

}  // namespace ostro::sql
