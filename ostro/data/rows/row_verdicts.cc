#include "ostro/data/rows/row_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::data {
namespace {

using Json = nlohmann::json;

constexpr const char* kVerdictsFormat = "ostro row verdicts 1";
constexpr int64_t kMostBytes = int64_t{1} << 36;

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct Totals {
  int64_t files = 0, rows = 0, dropped = 0;
  bool operator==(const Totals&) const = default;
};

Totals totals_of(const RowVerdicts& verdicts) {
  Totals out{.files = static_cast<int64_t>(verdicts.files.size())};
  for (const FileVerdicts& file : verdicts.files) {
    out.rows += file.rows;
    for (const RowVerdict& v : file.said) out.dropped += v.drop.empty() ? 0 : 1;
  }
  return out;
}

Result<RowVerdict> read_verdict(const io::JsonFields& fields, const FileVerdicts& file) {
  RowVerdict out;
  ASSIGN_OR_RETURN(out.row, fields.integer("row", 1, INT64_MAX));
  if (out.row > file.rows)
    return fields.bad("row", fmt::format("is {}, and {} has {} rows", out.row, file.file, file.rows));
  if (!file.said.empty() && out.row <= file.said.back().row)
    return fields.bad("row", fmt::format("is {}, behind row {}", out.row, file.said.back().row));
  if (fields.has("drop")) {
    ASSIGN_OR_RETURN(out.drop, fields.string("drop"));
    if (out.drop.empty()) return fields.bad("drop", "is empty");
  }
  if (fields.has("of")) {
    ASSIGN_OR_RETURN(out.of, fields.string("of"));
  }
  if (fields.has("value")) {
    ASSIGN_OR_RETURN(const Json* value, fields.get("value"));
    if (!value->is_number()) return fields.bad("value", "is not a number");
    out.value = value->get<double>();
  }
  return out;
}

// `rows` counts those of all files so far.
Status read_line(const io::JsonFields& fields, RowVerdicts& out, int64_t& rows) {
  if (fields.has("row")) {
    if (out.files.empty()) return fields.bad("row", "comes before the first file");
    ASSIGN_OR_RETURN(RowVerdict verdict, read_verdict(fields, out.files.back()));
    out.files.back().said.push_back(std::move(verdict));
    return {};
  }
  FileVerdicts file;
  ASSIGN_OR_RETURN(file.file, fields.string("file"));
  ASSIGN_OR_RETURN(file.sha256, fields.sha256("sha256"));
  ASSIGN_OR_RETURN(file.rows, fields.integer("rows", 0, INT64_MAX - rows));
  rows += file.rows;
  out.files.push_back(std::move(file));
  return {};
}

}  // namespace

bool FileVerdicts::drops(int64_t row) const {
  const auto at = std::lower_bound(said.begin(), said.end(), row,
                                   [](const RowVerdict& v, int64_t wanted) { return v.row < wanted; });
  return at != said.end() && at->row == row && !at->drop.empty();
}

std::map<std::string, int64_t> FileVerdicts::reasons() const {
  std::map<std::string, int64_t> out;
  for (const RowVerdict& v : said)
    if (!v.drop.empty()) ++out[v.drop];
  return out;
}

std::string RowVerdicts::left_out(size_t first, size_t count) const {
  Sha256 hash;
  bool any = false;
  std::map<std::string, int64_t> seen;  // how many files had these bytes
  for (size_t i = first; i < files.size() && i - first < count; ++i) {
    const FileVerdicts& file = files[i];
    const int64_t number = ++seen[file.sha256];
    for (const RowVerdict& v : file.said) {
      if (v.drop.empty()) continue;
      hash.update(number == 1 ? fmt::format("{} {}\n", file.sha256, v.row)
                              : fmt::format("{} {} {}\n", file.sha256, v.row, number));
      any = true;
    }
  }
  return any ? to_hex(hash.finish()) : "";
}

Status write_row_verdicts(io::FileSystem& fs, const std::string& path, const RowVerdicts& verdicts) {
  std::string text = line({{"format", kVerdictsFormat}});
  for (const FileVerdicts& file : verdicts.files) {
    text += line({{"file", file.file}, {"rows", file.rows}, {"sha256", file.sha256}});
    for (const RowVerdict& v : file.said) {
      Json json = {{"row", v.row}};
      if (!v.drop.empty()) json["drop"] = v.drop;
      if (!v.of.empty()) json["of"] = v.of;
      if (v.value) json["value"] = *v.value;
      text += line(json);
    }
  }
  const Totals all = totals_of(verdicts);
  text +=
      line({{"dropped", all.dropped}, {"files", all.files}, {"rows", all.rows}, {"text", sha256_hex(text)}});
  return io::write_file_atomically(fs, path, text);
}

Result<RowVerdicts> read_row_verdicts(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, fs.read_file(path, kMostBytes));
  const std::string_view text = bytes;
  RowVerdicts out;
  int64_t number = 0, rows = 0;
  bool ended = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string where = fmt::format("{}:{}", path, ++number);
    if (ended) return corrupt(fmt::format("{}: stands behind the last line", where));
    ASSIGN_OR_RETURN(const Json json, io::parse_json(text.substr(begin, end - begin), where));
    const io::JsonFields fields(json, where);
    if (number == 1) {
      ASSIGN_OR_RETURN(const std::string format, fields.string("format"));
      if (format != kVerdictsFormat)
        return unsupported(fmt::format("{}: \"format\" is \"{}\"; this program reads \"{}\"", where, format,
                                       kVerdictsFormat));
    } else if (fields.has("dropped")) {
      Totals all;
      ASSIGN_OR_RETURN(all.files, fields.integer("files", 0, INT64_MAX));
      ASSIGN_OR_RETURN(all.rows, fields.integer("rows", 0, INT64_MAX));
      ASSIGN_OR_RETURN(all.dropped, fields.integer("dropped", 0, INT64_MAX));
      ASSIGN_OR_RETURN(const std::string sum, fields.sha256("text"));
      if (const std::string now = sha256_hex(text.substr(0, begin)); now != sum)
        return corrupt(
            fmt::format("{}: the lines before have the SHA-256 {}, and had {}: the file was changed; "
                        "make it again",
                        where, now, sum));
      if (!(all == totals_of(out)))
        return fields.bad("dropped", "or \"files\" or \"rows\" are not those of the lines");
      ended = true;
    } else {
      RETURN_IF_ERROR(read_line(fields, out, rows));
    }
    begin = end + 1;
  }
  if (!ended)
    return corrupt(fmt::format(
        "{}: ends behind line {}, without its last line: the file was cut; make it again", path, number));
  return out;
}

Status check_files_of_verdicts(const RowVerdicts& verdicts, const std::string& path, const std::string& key,
                               const std::vector<std::pair<std::string, std::string>>& files) {
  if (verdicts.files.size() != files.size())
    return invalid_argument(
        fmt::format("{}: {} has verdicts on {} files, and the texts are {} files; make the "
                    "verdicts from these texts",
                    key, path, verdicts.files.size(), files.size()));
  for (size_t i = 0; i < files.size(); ++i)
    if (const FileVerdicts& v = verdicts.files[i]; v.sha256 != files[i].second)
      return invalid_argument(fmt::format(
          "{}: file {} of {} is {} with the SHA-256 {}, and the texts have there {} with {}; make the "
          "verdicts from these texts, in this order",
          key, i + 1, path, v.file, v.sha256, files[i].first, files[i].second));
  return {};
}

Status check_rows_of_verdicts(const FileVerdicts& verdicts, const std::string& file, int64_t rows) {
  if (verdicts.rows == rows) return {};
  return invalid_argument(fmt::format(
      "{}: has {} rows, and its verdicts (data.rows) are on {}; make them again", file, rows, verdicts.rows));
}

}  // namespace ostro::data
