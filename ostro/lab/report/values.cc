#include "ostro/lab/report/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/experiment/tables/replayed.h"
#include "ostro/lab/report/figure_rows.h"
#include "ostro/sql/operands.h"

namespace ostro::lab {
namespace {

Result<Rows> ask(const Database& record, const char* what, const Query& query) {
  auto rows = ask_record(record, query.sql);
  if (!rows.ok()) return rows.error().with_context(fmt::format("{}: {}.{}", query.where, what, query.name));
  return rows;
}

bool is_endless(const Value& value) {
  const auto* d = std::get_if<double>(&value);
  return d != nullptr && !std::isfinite(*d);
}

// An error where a cell has a number that is none. It may have no value (NULL).
Status check_table(const Query& query, const Rows& rows) {
  for (size_t i = 0; i < rows.rows.size(); ++i)
    for (size_t column = 0; column < rows.columns.size(); ++column)
      if (is_endless(rows.rows[i][column]))
        return wrong_shape("tables", query,
                           fmt::format("row {} has {} in column {}, which is no finite number", i + 1,
                                       value_text(rows.rows[i][column]), rows.columns[column]));
  return {};
}

}  // namespace

Result<Values> ask_all(const Database& record, const Plan& plan) {
  Values out;
  for (const Query& query : plan.queries) {
    ASSIGN_OR_RETURN(const Rows rows, ask(record, "queries", query));
    if (rows.rows.size() != 1 || rows.columns.size() != 1)
      return wrong_shape("queries", query,
                         fmt::format("gives {} rows of {} columns; a value is one row of one column",
                                     rows.rows.size(), rows.columns.size()));
    if (std::holds_alternative<std::monostate>(rows.rows[0][0]))
      return wrong_shape("queries", query, "gives no value (NULL)" + sql::division_hint(query.sql));
    if (is_endless(rows.rows[0][0]))
      return wrong_shape("queries", query,
                         fmt::format("gives {}, which is no finite number", value_text(rows.rows[0][0])));
    out.values.push_back({query, rows.rows[0][0], rows.number_class, rows.constants});
  }
  ASSIGN_OR_RETURN(const Rows verdicts, record.select("SELECT name, verdict, class, metric FROM hypotheses"));
  for (const auto& row : verdicts.rows) {
    const std::string metric = value_text(row[3]);
    out.verdicts.push_back({{value_text(row[0]), metric, ""},
                            row[1],
                            class_named(value_text(row[2])),
                            sql::constants_of(metric)});
  }
  for (const Query& query : plan.tables) {
    ASSIGN_OR_RETURN(Rows rows, ask(record, "tables", query));
    RETURN_IF_ERROR(check_table(query, rows));
    out.tables.push_back({query, std::move(rows)});
  }
  for (const Query& query : plan.figures) {
    ASSIGN_OR_RETURN(Rows rows, ask(record, "figures", query));
    RETURN_IF_ERROR(check_figure(query, rows));
    out.figures.push_back({query, std::move(rows)});
  }
  return out;
}

std::vector<std::string> constant_texts(const std::vector<sql::QueryConstant>& constants,
                                        sql::ConstantUse use) {
  std::vector<std::string> out;
  for (const sql::QueryConstant& constant : constants)
    if (constant.use == use && std::find(out.begin(), out.end(), constant.text) == out.end())
      out.push_back(constant.text);
  return out;
}

std::vector<std::string> typed_in_queries(const Values& values) {
  std::vector<std::string> out;
  const auto add = [&](const char* kind, const Query& query,
                       const std::vector<sql::QueryConstant>& constants) {
    for (const std::string& text : constant_texts(constants, sql::ConstantUse::kComputes))
      out.push_back(fmt::format("{}.{}: {}", kind, query.name, text));
  };
  for (const Quoted& v : values.values) add("queries", v.query, v.constants);
  for (const Quoted& v : values.verdicts) add("hypotheses", v.query, v.constants);
  for (const QuotedRows& t : values.tables) add("tables", t.query, t.rows.constants);
  for (const QuotedRows& f : values.figures) add("figures", f.query, f.rows.constants);
  return out;
}

std::string values_json(const Values& values) {
  const auto add_constants = [](nlohmann::json& entry, const std::vector<sql::QueryConstant>& constants) {
    for (const auto& [key, use] :
         {std::pair{"constants", sql::ConstantUse::kComputes},
          std::pair{"choices", sql::ConstantUse::kChooses}, std::pair{"units", sql::ConstantUse::kScales}})
      if (const auto texts = constant_texts(constants, use); !texts.empty()) entry[key] = texts;
  };
  nlohmann::json out = {{"values", nlohmann::json::object()},
                        {"tables", nlohmann::json::object()},
                        {"figures", nlohmann::json::object()}};
  const auto add_quoted = [&](const char* kind, const char* key, const std::vector<Quoted>& all) {
    for (const Quoted& v : all) {
      nlohmann::json& entry = out[kind][v.query.name];
      entry = {{key, value_text(v.value)}, {"class", class_name(v.number_class)}, {"query", v.query.sql}};
      add_constants(entry, v.constants);
    }
  };
  add_quoted("values", "value", values.values);
  add_quoted("hypotheses", "verdict", values.verdicts);
  const auto add = [&](const char* key, const std::vector<QuotedRows>& all) {
    for (const QuotedRows& t : all) {
      auto rows = nlohmann::json::array();
      for (const auto& row : t.rows.rows) {
        rows.push_back(nlohmann::json::array());
        for (const Value& value : row) rows.back().push_back(value_text(value));
      }
      out[key][t.query.name] = {{"columns", t.rows.columns},
                                {"rows", rows},
                                {"class", class_name(t.rows.number_class)},
                                {"query", t.query.sql}};
      add_constants(out[key][t.query.name], t.rows.constants);
    }
  };
  add("tables", values.tables);
  add("figures", values.figures);
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ostro::lab
