// Values: the answers to the queries of a plan: numbers with their class, tables, and figures. Values.
#pragma once

#include <string>
#include <vector>

#include "ostro/lab/plan/plan.h"
#include "ostro/lab/tables/database.h"

namespace ostro::lab {

struct Quoted {
  Query query;
  Value value;
  NumberClass number_class = NumberClass::kDeclared;
};
struct QuotedRows {
  Query query;
  Rows rows;
};

struct Values {
  std::vector<Quoted> values;
  std::vector<QuotedRows> tables, figures;
  std::vector<Quoted> verdicts;  // of the hypotheses; the query is the metric
};

// Asks all queries of the plan. Errors name the query and its line: one that fails; one of `queries` that
// does not give one row of one value; one of `figures` that does not give rows of (series, x, y), has more
// than 200 series, or numbers whose range is not finite.
Result<Values> ask_all(const Database& record, const Plan& plan);

// values.json: every value as text, with its class and query.
std::string values_json(const Values& values);

// The figure of a query's rows; the columns name its axes.
std::string figure_svg(const QuotedRows& figure);

}  // namespace ostro::lab
