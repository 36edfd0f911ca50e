// Rows of source files: what a document is made of, before any format says what it means.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

// Unused capacity behind the bytes of a row that spares the JSON parser a copy.
inline constexpr size_t kLinePadding = 64;

// A row as it was read.
struct Row {
  int64_t number =
      1;  // in its file, from 1: the line of a .jsonl, the row of a .parquet, 1 for any other file
  // Bytes [begin, end) of the unpacked file that hold it, line end not included; 0, 0 in a .parquet.
  int64_t begin = 0, end = 0;
  bool is_text = false;  // `bytes` are the document's text; else they are a JSON value
  std::string bytes;     // as they stand in the file (UTF-8 is not checked), or built from columns
  // Not empty: the row cannot be had, and why ("is 7 bytes long, and at most ..."). `bytes` are empty then.
  std::string problem;

  // A line without a value, which is no row.
  bool is_blank() const {
    return !is_text && problem.empty() && bytes.find_first_not_of(" \t\r\n") == std::string::npos;
  }
};

// Where reading goes on.
struct RowPosition {
  int64_t rows = 0;   // so many are passed over ...
  int64_t bytes = 0;  // ... which end at this byte of the unpacked file, line end included; 0: not known
  bool operator==(const RowPosition&) const = default;
};

// What a format reads of a row. Columnar files are read for these alone, and checked for them when opened.
struct RowField {
  enum class Type {
    kText,     // a string
    kInts,     // a list of integers
    kNumbers,  // a list of numbers
    kJson,     // anything: lists, structs, strings, ...
  };
  std::string name;
  Type type = Type::kText;
  bool required = true;
};

struct RowOptions {
  // A single kText field makes rows of columnar files texts; with others they are JSON objects.
  std::vector<RowField> fields;
  int64_t max_bytes = int64_t{1} << 30;  // of a row; a longer one is a problem of this row alone
};

// The rows of one file, in order, in memory bounded by its longest rows. Not thread-safe; movable by pointer.
class RowReader {
 public:
  virtual ~RowReader() = default;

  // False at the end. Errors are the file's (unreadable, truncated, damaged) and name it, with the row where
  // they can.
  virtual Result<bool> next(Row& row) = 0;
  // Behind the row last returned.
  virtual RowPosition position() const = 0;
  // How far that is in the file, in bytes of it as it is stored, for progress: exact in a plain file, else
  // about, but never falling and the file's size only behind the last row.
  virtual int64_t stored_bytes() const = 0;
  // SHA-256 of the file as it is stored, in hexadecimal; "" unless all of it was read, in order, by next().
  virtual std::string file_sha256() = 0;
};

// Opens a file of a known format. Passing over rows is cheap for plain .jsonl when the bytes are known, and
// by row groups in .parquet; compressed files are unpacked up to there. Errors: a file that has fewer rows
// than are to be passed over; a .parquet that lacks a required field or has it with another type (naming
// both); kUnsupported for .parquet in a build without it.
Result<std::unique_ptr<RowReader>> open_rows(io::FileSystem& fs, const std::string& path, FileFormat format,
                                             const RowOptions& options, const RowPosition& start = {});

// The bytes that the first `rows` of `all` rows take in a file of so many bytes, as if all were equally long.
int64_t bytes_of_rows(int64_t file_bytes, int64_t rows, int64_t all);

// What is wrong with a text that has a NUL byte there: it is some other kind of file.
std::string not_a_text(int64_t offset);

// "file:line" of a .jsonl, "file: row 3" of a .parquet, else the file: what a message about a row begins
// with.
std::string row_place(const std::string& path, FileFormat format, int64_t number);

}  // namespace ostro::data
