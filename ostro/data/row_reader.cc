#include "ostro/data/row_reader.h"

#include <fmt/core.h>

#include "ostro/base/sha256.h"
#include "ostro/data/parquet_rows.h"
#include "ostro/io/extension.h"
#include "ostro/io/line_reader.h"

namespace ostro::data {
namespace {

// A file that is one document.
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

// A line, a document.
class JsonLines final : public RowReader {
 public:
  JsonLines(io::LineReader lines, int64_t max_bytes) : lines_(std::move(lines)), max_bytes_(max_bytes) {}

  Result<bool> next(Row& row) override {
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
    return true;
  }
  RowPosition position() const override { return {lines_.line_number(), lines_.next_byte()}; }
  int64_t stored_bytes() const override { return lines_.stored_bytes(); }
  std::string file_sha256() override { return lines_.file_sha256(); }

 private:
  io::LineReader lines_;
  int64_t max_bytes_;
};

bool is_packed(const std::string& path) {
  return io::has_extension(path, ".gz") || io::has_extension(path, ".zst");
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
      reader = std::make_unique<JsonLines>(std::move(lines), options.max_bytes);
      break;
    }
    case FileFormat::kParquet:
      return open_parquet_rows(fs, path, options, start.rows);
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
      "holds a NUL byte (at byte {}), so it is no text; leave it out by a narrower glob, or convert it to "
      "UTF-8 if it is UTF-16 or UTF-32",
      offset);
}

std::string row_place(const std::string& path, FileFormat format, int64_t number) {
  switch (format) {
    case FileFormat::kText:
      return path;
    case FileFormat::kJsonl:
      return fmt::format("{}:{}", path, number);
    case FileFormat::kParquet:
      return fmt::format("{}: row {}", path, number);
  }
  return path;
}

}  // namespace ostro::data
