#include "ostro/paper/differences.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/experiment/tables/columns.h"
#include "ostro/io/files/path.h"
#include "ostro/paper/answers.h"

namespace ostro::paper {
namespace {

constexpr size_t kMostDifferences = 20;
constexpr int64_t kRowsAtOnce = 50'000;  // of a table, to read it in parts

using nlohmann::json;

std::string shown(const json& value) {
  constexpr size_t kMost = 60;
  std::string text = value.is_string() ? value.get<std::string>()
                                       : value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

void compare(const std::string& name, const json& there, const json& wanted, std::vector<std::string>& out) {
  if (there == wanted || out.size() >= kMostDifferences) return;
  const auto below = [&](const std::string& key) { return name.empty() ? key : name + "." + key; };
  if (there.is_object() && wanted.is_object()) {
    for (const auto& [key, value] : wanted.items()) {
      if (there.contains(key))
        compare(below(key), there[key], value, out);
      else
        out.push_back(fmt::format("{}: is missing", below(key)));
    }
    for (const auto& [key, value] : there.items())
      if (!wanted.contains(key)) out.push_back(fmt::format("{}: is no part of it", below(key)));
  } else if (there.is_array() && wanted.is_array() && there.size() == wanted.size()) {
    for (size_t i = 0; i < there.size(); ++i)
      compare(fmt::format("{}[{}]", name, i), there[i], wanted[i], out);
  } else {
    out.push_back(fmt::format("{}: is {}, not {}", name, shown(there), shown(wanted)));
  }
}

// The first row of a table that differs; empty: none does.
Result<std::string> first_difference(const lab::Database& there, const lab::Database& wanted,
                                     const std::string& table) {
  // Each part begins behind the last row of the one before it, so that no row is read twice. The first column
  // is the row's place in its database, which is not compared.
  int64_t left_place = INT64_MIN, right_place = INT64_MIN;
  const auto part = [&](const lab::Database& of, int64_t& place) {
    auto rows = of.select(fmt::format("SELECT rowid, * FROM {} WHERE rowid > {} ORDER BY rowid LIMIT {}",
                                      table, place, kRowsAtOnce));
    if (rows.ok() && !rows->rows.empty())
      if (const auto* last = std::get_if<int64_t>(&rows->rows.back()[0])) place = *last;
    return rows;
  };
  for (int64_t first = 0;; first += kRowsAtOnce) {
    const auto right = part(wanted, right_place);
    const auto left = part(there, left_place);
    if (!right.ok() && !left.ok()) return std::string();  // neither has the table: measured columns
    if (!left.ok()) return fmt::format("{}: {}", table, left.error().message());
    if (!right.ok()) return fmt::format("{}: is no part of it", table);
    if (left->columns != right->columns) return fmt::format("{}: has other columns", table);
    for (size_t i = 0; i < std::min(left->rows.size(), right->rows.size()); ++i)
      for (size_t c = 1; c < right->columns.size(); ++c)
        if (left->rows[i][c] != right->rows[i][c])
          return fmt::format("{}: row {}: {} is {}, not {}", table, first + static_cast<int64_t>(i) + 1,
                             right->columns[c], lab::value_text(left->rows[i][c]),
                             lab::value_text(right->rows[i][c]));
    if (left->rows.size() != right->rows.size())
      return fmt::format("{}: has {} rows, not {}", table, first + static_cast<int64_t>(left->rows.size()),
                         first + static_cast<int64_t>(right->rows.size()));
    if (static_cast<int64_t>(right->rows.size()) < kRowsAtOnce) return std::string();
  }
}

}  // namespace

std::vector<std::string> value_differences(const std::string& there, const std::string& wanted) {
  const json left = json::parse(there, nullptr, /*allow_exceptions=*/false);
  const json right = json::parse(wanted, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> out;
  if (left.is_discarded())
    out.emplace_back("is no JSON");
  else
    compare("", left, right, out);
  return out;
}

Result<std::vector<std::string>> record_differences(const std::string& there, const std::string& wanted) {
  ASSIGN_OR_RETURN(const lab::Database right, lab::Database::open(wanted));
  const auto left = lab::Database::open(there);
  if (!left.ok()) return std::vector<std::string>{left.error().message()};
  std::vector<std::string> out;
  for (const lab::Table& table : lab::record_tables()) {
    ASSIGN_OR_RETURN(std::string difference, first_difference(*left, right, table.name));
    if (!difference.empty()) out.push_back(std::move(difference));
  }
  return out;
}

Result<std::vector<std::string>> find_differences(io::FileSystem& fs, const std::string& folder,
                                                  const std::vector<lab::ReportFile>& files) {
  ASSIGN_OR_RETURN(std::vector<std::string> wrong, lab::check_report(fs, folder, files));
  for (const lab::ReportFile& file : files) {
    const std::string path = io::join_path(folder, file.name);
    const auto there = fs.read_file(path);
    if (!there.ok() || *there == file.bytes) continue;
    std::vector<std::string> lines;
    if (file.name == "values.json") lines = value_differences(*there, file.bytes);
    if (file.name == "record.sqlite") {
      ASSIGN_OR_RETURN(lines, record_differences(*there, file.bytes));
    }
    for (const lab::ReportFile& other : files)
      if (other.bytes == *there) lines.push_back(fmt::format("its bytes are those of {}", other.name));
    for (const std::string& line : lines) wrong.push_back(fmt::format("{}: {}", path, line));
  }
  return wrong;
}

}  // namespace ostro::paper
