// Values: the answers to the queries of a plan: numbers with their class, tables, and figures. Values.
#pragma once

#include <string>
#include <vector>

#include "ostro/experiment/plan/plan.h"
#include "ostro/experiment/tables/database.h"

namespace ostro::lab {

struct Quoted {
  Query query;
  Value value;
  NumberClass number_class = NumberClass::kDeclared;
  std::vector<sql::QueryConstant> constants = {};  // of the query
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
// does not give one row of one value, which is finite if it is a number; one of `tables` with a number that
// is not finite; one of `figures` whose rows are not those of its form (check_figure in figure_rows.h).
Result<Values> ask_all(const Database& record, const Plan& plan);

// Constants of a query of one use, as they stand there, each once.
std::vector<std::string> constant_texts(const std::vector<sql::QueryConstant>& constants,
                                        sql::ConstantUse use);

// The numbers that were typed by hand in queries and can be a part of an answer: "queries.best: 0.5".
std::vector<std::string> typed_in_queries(const Values& values);

// values.json: every value as text, with its class, its query, and the constants of the query that make it or
// choose it.
std::string values_json(const Values& values);

// The figure of a query's rows; the columns name its axes. Its name stands above it where it is shown.
std::string figure_svg(const QuotedRows& figure, bool shows_name = true);

}  // namespace ostro::lab
