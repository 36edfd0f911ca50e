#include "ostro/chain/leaf_file.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "ostro/chain/canonical.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"
#include "ostro/io/read/line_reader.h"

namespace ostro::chain {
namespace {

// The step of a line, from its end: the keys are sorted, and the step is the last. Nothing: it is no line.
std::optional<int64_t> step_of_line(std::string_view line) {
  constexpr std::string_view kKey = ",\"step\":";
  const size_t key = line.rfind(kKey);
  if (key == std::string_view::npos || !line.ends_with('}')) return std::nullopt;
  const std::string_view digits = line.substr(key + kKey.size(), line.size() - key - kKey.size() - 1);
  int64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return step;
}

Result<std::vector<LeafRecord>> parse_line(std::string_view line, const std::string& where) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const io::JsonFields fields(json, where);
  ASSIGN_OR_RETURN(const nlohmann::json* losses, fields.get("losses"));
  if (!losses->is_array()) return fields.bad("losses", "is not a list");
  const bool with_gradients = fields.has("gradients");
  std::vector<LeafRecord> out;
  for (size_t i = 0; i < losses->size(); ++i) {
    const nlohmann::json& loss = (*losses)[i];
    if (!loss.is_string()) return fields.bad("losses", "has a value that is no text");
    ASSIGN_OR_RETURN(const double value, parse_hex_float(loss.get<std::string>()));
    LeafRecord record{static_cast<int64_t>(i), value, std::nullopt};
    if (with_gradients) {
      const nlohmann::json& list = json["gradients"];
      if (!list.is_array() || list.size() != losses->size() || !list[i].is_string())
        return fields.bad("gradients", "is not a list of as many texts as there are losses");
      record.gradient = list[i].get<std::string>();
    }
    out.push_back(std::move(record));
  }
  return out;
}

}  // namespace

std::string leaves_line(int64_t step, std::span<const LeafRecord> leaves) {
  std::string gradients, losses;
  for (const LeafRecord& leaf : leaves) {
    if (leaf.gradient) gradients += fmt::format("{}\"{}\"", gradients.empty() ? "" : ",", *leaf.gradient);
    losses += fmt::format("{}\"{}\"", losses.empty() ? "" : ",", hex_float(leaf.loss));
  }
  if (!gradients.empty()) gradients = fmt::format("\"gradients\":[{}],", gradients);
  return fmt::format("{{{}\"losses\":[{}],\"step\":{}}}", gradients, losses, step);
}

Status cut_leaves(io::FileSystem& fs, const std::string& path, int64_t step) {
  const auto info = fs.stat(path);
  if (!info.ok()) return info.error().code() == ErrorCode::kNotFound ? Status() : Status(info.error());
  int64_t kept = 0;
  {
    ASSIGN_OR_RETURN(io::LineReader lines, io::LineReader::open(fs, path));
    std::string_view line;
    while (true) {
      const Result<bool> more = lines.next(line);
      if (!more.ok()) return more.error();
      if (!*more) break;
      // A last line without its newline ends with the file; it may be whole, and it may not.
      const std::optional<int64_t> its = step_of_line(line);
      if (!its || *its > step || lines.line_begin() + lines.line_bytes() >= info->size) break;
      kept = lines.next_byte();
    }
  }
  return kept < info->size ? fs.truncate(path, kept) : Status();
}

Result<LeafWriter> LeafWriter::resume(io::FileSystem& fs, const std::string& path, int64_t step) {
  RETURN_IF_ERROR(cut_leaves(fs, path, step));
  ASSIGN_OR_RETURN(auto file, fs.open_append(path));
  RETURN_IF_ERROR(fs.sync_dir(io::parent_path(path)));
  return LeafWriter(std::move(file));
}

Status LeafWriter::append(int64_t step, std::span<const LeafRecord> leaves) {
  return file_->append(leaves_line(step, leaves) + "\n");
}

Result<std::vector<LeafRecord>> read_leaves(io::FileSystem& fs, const std::string& path, int64_t step) {
  ASSIGN_OR_RETURN(io::LineReader lines, io::LineReader::open(fs, path));
  std::string_view line;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, lines.next(line));
    if (!more) return not_found(fmt::format("{}: has no line of step {}", path, step));
    const std::optional<int64_t> its = step_of_line(line);
    if (its && *its == step) return parse_line(line, fmt::format("{}: line {}", path, lines.line_number()));
  }
}

}  // namespace ostro::chain
