#include "ostro/lab/report/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/experiment/tables/replayed.h"
#include "ostro/lab/report/figure.h"
#include "ostro/page/numbers/axis.h"
#include "ostro/sql/operands.h"

namespace ostro::lab {
namespace {

constexpr size_t kMostSeries = 200;

Result<Rows> ask(const Database& record, const char* what, const Query& query) {
  auto rows = ask_record(record, query.sql);
  if (!rows.ok()) return rows.error().with_context(fmt::format("{}: {}.{}", query.where, what, query.name));
  return rows;
}

Error wrong_shape(const char* what, const Query& query, const std::string& message) {
  return invalid_argument(fmt::format("{}: {}.{}: {}", query.where, what, query.name, message));
}

bool is_number(const Value& value) {
  if (const auto* d = std::get_if<double>(&value)) return std::isfinite(*d);
  return std::holds_alternative<int64_t>(value);
}

double number(const Value& value) {
  const auto* d = std::get_if<double>(&value);
  return d != nullptr ? *d : static_cast<double>(std::get<int64_t>(value));
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

// An error where no axis fits the numbers of a column, or there are too many lines to tell apart.
Status check_figure(const Query& query, const Rows& rows) {
  std::set<std::string> series;
  for (const auto& row : rows.rows) {
    series.insert(value_text(row[0]));
    if (series.size() > kMostSeries)
      return wrong_shape("figures", query,
                         fmt::format("has more than {} series; choose some of them with WHERE", kMostSeries));
  }
  for (const size_t column : {size_t{1}, size_t{2}}) {
    std::vector<double> values;
    for (const auto& row : rows.rows) values.push_back(number(row[column]));
    const page::Range range = page::range_of(values);
    if (!std::isfinite(range.high - range.low))
      return wrong_shape("figures", query,
                         fmt::format("has {} from {} to {}: no axis is that long", rows.columns[column],
                                     *std::min_element(values.begin(), values.end()),
                                     *std::max_element(values.begin(), values.end())));
  }
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
    if (rows.columns.size() != 3)
      return wrong_shape(
          "figures", query,
          fmt::format("gives {} columns; a figure has three: series, x and y", rows.columns.size()));
    if (rows.rows.empty()) return wrong_shape("figures", query, "gives no rows");
    for (const auto& row : rows.rows)
      if (!is_number(row[1]) || !is_number(row[2]))
        return wrong_shape(
            "figures", query,
            fmt::format("has a point ({}, {}), which are not two numbers{}", value_text(row[1]),
                        value_text(row[2]), sql::division_hint(query.sql)));
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

std::string figure_svg(const QuotedRows& figure, bool shows_name) {
  std::vector<Line> lines;
  for (const auto& row : figure.rows.rows) {
    const std::string name = value_text(row[0]);
    auto found = std::find_if(lines.begin(), lines.end(), [&](const Line& l) { return l.name == name; });
    if (found == lines.end()) found = lines.insert(lines.end(), {name, {}});
    found->points.emplace_back(number(row[1]), number(row[2]));
  }
  return line_chart_svg(figure.query.name, figure.rows.columns[1], figure.rows.columns[2], lines, shows_name);
}

}  // namespace ostro::lab
