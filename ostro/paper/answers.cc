#include "ostro/paper/answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/base/sha256.h"
#include "ostro/experiment/tables/replayed.h"
#include "ostro/io/files/path.h"

namespace ostro::paper {
namespace {

void add_bits(std::string& out, uint64_t bits) {
  for (int i = 0; i < 64; i += 8) out += static_cast<char>(bits >> i & 0xff);
}

std::string bytes_of(const lab::Value& value) {
  std::string out = "n";
  if (const auto* i = std::get_if<int64_t>(&value)) {
    out = "i";
    add_bits(out, static_cast<uint64_t>(*i));
  } else if (const auto* d = std::get_if<double>(&value)) {
    out = "r";
    add_bits(out, std::bit_cast<uint64_t>(*d));
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    out = "t";
    add_bits(out, s->size());
    out += *s;
  }
  return out;
}

// Which columns have numbers alone.
std::vector<bool> numeric_columns(const lab::Rows& rows) {
  std::vector<bool> out(rows.columns.size(), !rows.rows.empty());
  for (const auto& row : rows.rows)
    for (size_t i = 0; i < row.size(); ++i)
      if (std::holds_alternative<std::string>(row[i])) out[i] = false;
  return out;
}

}  // namespace

std::vector<std::string> rounded_texts(const lab::Value& value) {
  std::vector<std::string> out;
  if (const auto* d = std::get_if<double>(&value); d != nullptr && std::isfinite(*d))
    for (int digits = 0; digits <= kMostDigits; ++digits) out.push_back(fmt::format("{:.{}f}", *d, digits));
  return out;
}

Result<std::string> table_hash(const lab::Database& record, const std::string& table) {
  Sha256 hash;
  RETURN_IF_ERROR(record.each_row(table, [&](const std::vector<lab::Value>& row) {
    for (const lab::Value& value : row) hash.update(bytes_of(value));
  }));
  return to_hex(hash.finish());
}

Result<std::string> value_words(const lab::ReportData& data, const lab::Quoted& value) {
  ASSIGN_OR_RETURN(const lab::Database::Reads reads, data.tables.reads(value.query.sql));
  std::string out =
      fmt::format("class: {}\nquery: {}\n", lab::class_name(value.number_class), value.query.sql);
  const auto add_constants = [&](const char* what, sql::ConstantUse use) {
    if (const auto texts = lab::constant_texts(value.constants, use); !texts.empty())
      out += fmt::format("{}: {}\n", what, fmt::join(texts, ", "));
  };
  add_constants("constants in it", sql::ConstantUse::kComputes);
  add_constants("constants that choose", sql::ConstantUse::kChooses);
  add_constants("units", sql::ConstantUse::kScales);
  for (const std::string& table : reads.tables) {
    ASSIGN_OR_RETURN(const std::string hash, table_hash(data.tables, table));
    out += fmt::format("reads: {} {}\n", table, hash);
  }
  ASSIGN_OR_RETURN(const std::set<std::string> steps, lab::steps_under(data.tables, reads.tables));
  ASSIGN_OR_RETURN(const lab::Rows replays, data.tables.select("SELECT name, verified, who FROM replays"));
  for (const auto& row : replays.rows)
    if (steps.contains(lab::value_text(row[0])))
      out += fmt::format("replayed: {}: {}, by {}\n", lab::value_text(row[0]), lab::value_text(row[1]),
                         lab::value_text(row[2]));
  return out;
}

Result<std::string> answers_json(const lab::ReportData& data, const lab::Plan& plan,
                                 const lab::LabState& state, const std::vector<std::string>& typed) {
  nlohmann::json out = nlohmann::json::parse(lab::values_json(data.values));
  out["lab"] = {{"name", plan.name},
                {"question", plan.question},
                {"file", std::string(io::base_name(plan.file))},
                {"hash", state.hash()}};
  out["typed"] = typed;
  out["replays"] = nlohmann::json::array();
  ASSIGN_OR_RETURN(const lab::Rows replays, data.tables.select("SELECT name, verified, who FROM replays"));
  for (const auto& row : replays.rows)
    out["replays"].push_back({lab::value_text(row[0]), lab::value_text(row[1]), lab::value_text(row[2])});
  if (!out.contains("hypotheses")) out["hypotheses"] = nlohmann::json::object();
  out["inputs"] = nlohmann::json::object();
  std::map<std::string, std::string> hashes;
  const auto add_reads = [&](const char* kind, const lab::Query& query) -> Status {
    ASSIGN_OR_RETURN(const lab::Database::Reads reads, data.tables.reads(query.sql));
    out[kind][query.name]["reads"] = reads.tables;
    for (const std::string& table : reads.tables)
      if (!hashes.contains(table)) {
        ASSIGN_OR_RETURN(hashes[table], table_hash(data.tables, table));
        out["inputs"][table] = hashes[table];
      }
    return {};
  };
  for (const lab::Quoted& value : data.values.values) {
    RETURN_IF_ERROR(add_reads("values", value.query));
    if (const auto texts = rounded_texts(value.value); !texts.empty())
      out["values"][value.query.name]["rounded"] = texts;
  }
  for (const lab::Quoted& verdict : data.values.verdicts)
    RETURN_IF_ERROR(add_reads("hypotheses", verdict.query));
  for (const lab::QuotedRows& table : data.values.tables) {
    RETURN_IF_ERROR(add_reads("tables", table.query));
    out["tables"][table.query.name]["numeric"] = numeric_columns(table.rows);
  }
  for (const lab::QuotedRows& figure : data.values.figures)
    RETURN_IF_ERROR(add_reads("figures", figure.query));
  return out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace ostro::paper
