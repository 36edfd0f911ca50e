#include "ostro/corpus_check/eval_files.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ostro/data/sources/row_reader.h"
#include "ostro/data/sources/row_values.h"

namespace ostro::corpus_check {
namespace {

constexpr int kMaxEvalLevels = 200;  // nesting of JSON, as in rows of conversations

// Appends every string in a JSON value, separated by line ends. `levels` limits the nesting.
Status append_strings(const nlohmann::ordered_json& value, int levels, std::string& out) {
  if (value.is_string()) {
    if (!out.empty()) out += '\n';
    out += value.get_ref<const std::string&>();
  }
  if (!value.is_structured()) return {};
  if (levels == 0)
    return invalid_argument(fmt::format("more than {} levels of objects and arrays", kMaxEvalLevels));
  for (const auto& item : value) RETURN_IF_ERROR(append_strings(item, levels - 1, out));
  return {};
}

Result<std::string> eval_text(const data::Row& row, const std::string& field) {
  if (!row.problem.empty()) return invalid_argument(row.problem);
  bool repaired = false;
  std::string bytes = data::as_utf8(row.bytes, repaired);
  if (row.is_text) return bytes;
  const auto value = nlohmann::ordered_json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return invalid_argument("not valid JSON");
  std::string out;
  if (field.empty()) {
    RETURN_IF_ERROR(append_strings(value, kMaxEvalLevels, out));
  } else {
    if (!value.is_object() || !value.contains(field))
      return invalid_argument(
          fmt::format("has no field \"{}\"; set --eval_field, or leave it out to take every string", field));
    RETURN_IF_ERROR(append_strings(value[field], kMaxEvalLevels, out));
  }
  return out;
}

}  // namespace

Status add_eval_files(io::FileSystem& fs, const std::vector<data::SourceFile>& files,
                      const std::string& field, const std::string& key, EvalIndex& index) {
  data::RowOptions rows;
  rows.fields = {{field, data::RowField::Type::kJson, true}};
  if (field.empty()) rows.fields.clear();
  for (const data::SourceFile& file : files) {
    if (file.format == data::FileFormat::kParquet && field.empty())
      return invalid_argument(fmt::format("{0}: {1}: name the column with {0}_field", key, file.path));
    ASSIGN_OR_RETURN(const auto reader, data::open_rows(fs, file.path, file.format, rows));
    data::Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader->next(row));
      if (!more) break;
      const std::string place = data::row_place(file.path, file.format, row.number);
      if (row.is_blank()) continue;
      auto text = eval_text(row, field);
      if (!text.ok()) return text.error().with_context(place);
      index.add(place, *text);
    }
  }
  return {};
}

}  // namespace ostro::corpus_check
