#include "ostro/data/sources/row_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/data/sources/parquet_rows.h"
#include "ostro/data/sources/row_values.h"
#include "ostro/io/files/path.h"
#include "ostro/io/read/line_reader.h"

namespace ostro::data {
namespace {

// A text file: the whole file is one document.
class WholeFile final : public RowReader {
 public:
  WholeFile(std::unique_ptr<io::RandomAccessFile> file, int64_t max_bytes, int64_t skip)
      : file_(std::move(file)), max_bytes_(max_bytes), rows_(skip) {}

  Result<bool> next(Row& row) override {
    if (rows_ > 0) return false;
    rows_ = 1;
    row = Row{.number = 1, .begin = 0, .end = file_->size(), .is_text = true, .bytes = {}, .problem = {}};
    if (file_->size() > max_bytes_) {
      row.problem = row_too_long(file_->size(), max_bytes_);
      return true;
    }
    row.bytes.resize(static_cast<size_t>(file_->size()));
    RETURN_IF_ERROR(file_->read(0, std::as_writable_bytes(std::span(row.bytes))));
    sha256_ = sha256_hex(row.bytes);
    if (const size_t nul = row.bytes.find('\0'); nul != std::string::npos) {
      row.problem = not_a_text(static_cast<int64_t>(nul));
      row.bytes = {};
    }
    return true;
  }
  RowPosition position() const override { return {rows_, stored_bytes()}; }
  int64_t stored_bytes() const override { return rows_ > 0 ? file_->size() : 0; }
  std::string file_sha256() override { return sha256_; }

 private:
  std::unique_ptr<io::RandomAccessFile> file_;
  int64_t max_bytes_, rows_;
  std::string sha256_;
};

// True if an object begins in this line but does not end in it. Any other error concerns only this row.
bool is_open_object(const std::string& line) {
  bool repaired = false;
  const std::string text = as_utf8(line, repaired);
  try {
    [[maybe_unused]] const nlohmann::json whole = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    return e.byte > text.size();
  } catch (const nlohmann::json::exception&) {  // a number is out of range
  }
  return false;
}

// Why a .json with this first line is a single JSON document and not JSON lines. "" when it is JSON lines.
std::string not_lines(const std::string& line) {
  const size_t begin = std::min(line.find_first_not_of(" \t\r\n"), line.size());
  const bool is_list = line.substr(begin, 1) == "[";
  if (!is_list && (line.substr(begin, 1) != "{" || !is_open_object(line))) return "";
  return fmt::format(
      "the file is one JSON document and not lines, since its first line {}; write its rows as objects, one "
      "a line, or leave it out by a narrower glob",
      is_list ? "begins a list" : "is not a whole object");
}

// JSON lines: every line is a document.
class JsonLines final : public RowReader {
 public:
  // With `may_be_one`, the first line decides whether the file is JSON lines. If it is not, the whole file is
  // one row with a problem.
  JsonLines(io::LineReader lines, int64_t max_bytes, bool may_be_one)
      : lines_(std::move(lines)), max_bytes_(max_bytes), may_be_one_(may_be_one) {}

  Result<bool> next(Row& row) override {
    if (is_one_) return false;
    std::string_view line;
    ASSIGN_OR_RETURN(const bool more, lines_.next(line));
    if (!more) return false;
    row.number = lines_.line_number();
    row.begin = lines_.line_begin();
    row.end = row.begin + lines_.line_bytes();
    row.is_text = false;
    row.bytes.reserve(line.size() + kLinePadding);
    row.bytes.assign(line);
    lines_.release_line();
    row.problem = lines_.line_bytes() > max_bytes_ ? row_too_long(lines_.line_bytes(), max_bytes_) : "";
    if (may_be_one_ && row.number == 1 && row.problem.empty()) {
      row.problem = not_lines(row.bytes);
      is_one_ = !row.problem.empty();
      if (is_one_) row.bytes = {};
    }
    return true;
  }
  RowPosition position() const override { return {lines_.line_number(), lines_.next_byte()}; }
  int64_t stored_bytes() const override { return lines_.stored_bytes(); }
  std::string file_sha256() override { return lines_.file_sha256(); }

 private:
  io::LineReader lines_;
  int64_t max_bytes_;
  bool may_be_one_, is_one_ = false;
};

bool is_packed(const std::string& path) {
  return io::has_extension(path, ".gz") || io::has_extension(path, ".zst");
}

// True if the name allows a single JSON document with many lines.
bool is_named_json(const std::string& path) {
  return io::has_extension(path, ".json") || io::has_extension(path, ".json.gz") ||
         io::has_extension(path, ".json.zst");
}

}  // namespace

Result<std::unique_ptr<RowReader>> open_rows(io::FileSystem& fs, const std::string& path, FileFormat format,
                                             const RowOptions& options, const RowPosition& start) {
  std::unique_ptr<RowReader> reader;
  switch (format) {
    case FileFormat::kText: {
      ASSIGN_OR_RETURN(auto file, fs.open(path));
      reader = std::make_unique<WholeFile>(std::move(file), options.max_bytes, start.rows);
      break;
    }
    case FileFormat::kJsonl: {
      ASSIGN_OR_RETURN(io::LineReader lines,
                       io::LineReader::open(fs, path,
                                            {.max_line = options.max_bytes,
                                             .pass_long = true,
                                             .skip_lines = start.rows,
                                             .skip_bytes = is_packed(path) ? 0 : start.bytes}));
      reader = std::make_unique<JsonLines>(std::move(lines), options.max_bytes, is_named_json(path));
      break;
    }
    case FileFormat::kParquet: return open_parquet_rows(fs, path, options, start.rows);
  }
  return reader;
}

int64_t bytes_of_rows(int64_t file_bytes, int64_t rows, int64_t all) {
  if (all == 0) return file_bytes;
  const double share = static_cast<double>(rows) / static_cast<double>(all);  // exactly 1 at the end
  return static_cast<int64_t>(static_cast<double>(file_bytes) * share);
}

std::string row_too_long(int64_t bytes, int64_t limit) {
  return fmt::format("is {} bytes long, and at most {} are read as one document; split it", bytes, limit);
}

std::string not_a_text(int64_t offset) {
  return fmt::format(
      "holds a NUL byte (at byte {}), so it is not a text; leave it out by a narrower glob, or convert it to "
      "UTF-8 if it is UTF-16 or UTF-32",
      offset);
}

std::string row_place(const std::string& path, FileFormat format, int64_t number) {
  switch (format) {
    case FileFormat::kText: return path;
    case FileFormat::kJsonl: return fmt::format("{}:{}", path, number);
    case FileFormat::kParquet: return fmt::format("{}: row {}", path, number);
  }
  return path;
}

}  // namespace ostro::data
