#include "ostro/lab/tables/columns.h"

#include <algorithm>

namespace ostro::lab {

const char* class_name(NumberClass number_class) {
  constexpr const char* kNames[] = {"recorded", "declared", "measured"};
  return kNames[static_cast<size_t>(number_class)];
}

NumberClass Table::weakest() const {
  NumberClass out = NumberClass::kRecorded;
  for (const Column& column : columns) out = std::max(out, column.number_class);
  return out;
}

std::span<const Table> record_tables() {
  constexpr NumberClass kDeclared = NumberClass::kDeclared, kMeasured = NumberClass::kMeasured;
  static const std::vector<Table> kTables = {
      {"lab",
       {{"name", "TEXT", kDeclared}, {"question", "TEXT", kDeclared}, {"plan", "TEXT"}, {"hash", "TEXT"}}},
      {"steps", {{"name", "TEXT"}, {"kind", "TEXT"}, {"fingerprint", "TEXT"}, {"content", "TEXT"}}},
      {"inputs", {{"name", "TEXT"}, {"parameter", "TEXT"}, {"input", "TEXT"}}},
      {"variables", {{"name", "TEXT"}, {"variable", "TEXT"}, {"value", "TEXT", kDeclared}}},
      {"sources",
       {{"name", "TEXT"},
        {"file", "TEXT"},
        {"sha256", "TEXT"},
        {"bytes", "INTEGER"},
        {"licence", "TEXT", kDeclared}}},
      {"outputs",
       {{"name", "TEXT", kDeclared},
        {"file", "TEXT", kDeclared},
        {"sha256", "TEXT", kDeclared},
        {"bytes", "INTEGER", kDeclared}}},
      {"stores",
       {{"name", "TEXT"},
        {"split", "TEXT"},
        {"documents", "INTEGER"},
        {"tokens", "INTEGER"},
        {"bytes", "INTEGER"}}},
      {"runs",
       {{"run", "TEXT"},
        {"hash", "TEXT"},
        {"steps", "INTEGER"},
        {"program", "TEXT"},
        {"data", "TEXT"},
        {"tokenizer", "TEXT"},
        {"numerics", "TEXT"}}},
      {"forks", {{"run", "TEXT"}, {"parent", "TEXT"}, {"step", "INTEGER"}}},
      {"config", {{"run", "TEXT"}, {"path", "TEXT"}, {"value", "TEXT"}}},
      {"chain",
       {{"run", "TEXT"}, {"step", "INTEGER"}, {"loss", "REAL"}, {"tokens", "INTEGER"}, {"hash", "TEXT"}}},
      {"checkpoints", {{"run", "TEXT"}, {"step", "INTEGER"}, {"state", "TEXT"}}},
      {"evaluations",
       {{"name", "TEXT"},
        {"run", "TEXT"},
        {"step", "INTEGER"},
        {"state", "TEXT"},
        {"loss", "REAL"},
        {"bits_per_byte", "REAL"},
        {"tokens", "INTEGER"}}},
      {"hypotheses",
       {{"name", "TEXT"},
        {"metric", "TEXT", kDeclared},
        {"supported", "TEXT", kDeclared},
        {"refuted", "TEXT", kDeclared},
        {"n", "INTEGER", kDeclared},
        {"mean", "REAL", kDeclared},
        {"low95", "REAL", kDeclared},
        {"high95", "REAL", kDeclared},
        {"verdict", "TEXT", kDeclared},
        {"reason", "TEXT", kDeclared},
        {"class", "TEXT"},
        {"predicted_low", "REAL", kDeclared},
        {"predicted_high", "REAL", kDeclared},
        {"chance", "REAL", kDeclared},
        {"held", "INTEGER", kDeclared},
        {"registration", "TEXT"},
        {"beacon", "TEXT", kDeclared},
        {"late", "INTEGER"}}},
      {"metrics", {{"hypothesis", "TEXT"}, {"unit", "TEXT", kDeclared}, {"value", "REAL", kDeclared}}},
      {"registry",
       {{"line", "INTEGER"},
        {"kind", "TEXT"},
        {"hash", "TEXT"},
        {"registration", "TEXT"},
        {"hypothesis", "TEXT"},
        {"text", "TEXT", kDeclared},
        {"changes", "TEXT"},
        {"late", "TEXT"},
        {"journal", "TEXT"},
        {"time", "TEXT", kDeclared},
        {"key", "TEXT", kDeclared}}},
      {"sessions",
       {{"run", "TEXT", kMeasured},
        {"session", "INTEGER", kMeasured},
        {"started", "TEXT", kMeasured},
        {"ended", "TEXT", kMeasured},
        {"outcome", "TEXT", kMeasured},
        {"from_step", "INTEGER", kMeasured},
        {"to_step", "INTEGER", kMeasured},
        {"seconds", "REAL", kMeasured},
        {"cpu", "TEXT", kMeasured}}},
  };
  return kTables;
}

const Table* find_table(std::string_view name) {
  for (const Table& table : record_tables())
    if (table.name == name) return &table;
  return nullptr;
}

}  // namespace ostro::lab
