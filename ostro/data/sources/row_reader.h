// RowReader: reads the rows of source files as raw text or JSON. A format turns rows into tokens later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

// With this much unused capacity after the bytes of a row, the JSON parser need not copy them.
inline constexpr size_t kLinePadding = 64;

// A row as it was read.
struct Row {
  int64_t number = 1;  // in its file, from 1: line of a .jsonl, row of a .parquet, else 1
  // The row is bytes [begin, end) of the unpacked file, without the line end. 0, 0 in a .parquet.
  int64_t begin = 0, end = 0;
  bool is_text = false;  // `bytes` are the document's text; else they are a JSON value
  std::string bytes;     // unchanged from the file (UTF-8 is not checked), or built from columns
  // Why the row cannot be read ("is 7 bytes long, and at most ..."); `bytes` are empty then. Empty: it was
  // read.
  std::string problem;

  // A line of only white space. It does not count as a row.
  bool is_blank() const {
    return !is_text && problem.empty() && bytes.find_first_not_of(" \t\r\n") == std::string::npos;
  }
};

// A position between two rows of a file, where reading can continue.
struct RowPosition {
  int64_t rows = 0;  // rows before this position ...
  // ... and where they end, in bytes of the unpacked file, line end included; 0: not known
  int64_t bytes = 0;
  bool operator==(const RowPosition&) const = default;
};

// A field that a format reads. Of columnar files only these columns are read; opening checks that they exist.
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
  // With a single kText field, rows of columnar files are texts; otherwise they are JSON objects.
  std::vector<RowField> fields;
  // of a row; a longer one gets a Row::problem, the others are still read
  int64_t max_bytes = int64_t{1} << 30;
};

// Reads the rows of one file in order. Memory is bounded by its longest rows. Not thread-safe.
class RowReader {
 public:
  virtual ~RowReader() = default;

  // False at the end. Errors are about the file (unreadable, truncated, damaged) and name it, and the row
  // where possible. A bad row is not an error but has Row::problem.
  virtual Result<bool> next(Row& row) = 0;
  // The position after the row last returned.
  virtual RowPosition position() const = 0;
  // The position in bytes of the stored (perhaps compressed) file, for progress. Exact in a plain file,
  // otherwise an estimate that never falls and reaches the file's size only after the last row.
  virtual int64_t stored_bytes() const = 0;
  // SHA-256 of the stored file, in hexadecimal; "" unless next() read all of it from the start.
  virtual std::string file_sha256() = 0;
};

// Opens a file of a known format at `start`. Skipping is cheap in plain .jsonl when the byte is known, and in
// .parquet, by whole row groups; compressed files are unpacked up to the position. Errors: a file with fewer
// rows than are skipped; a .parquet without a required field, or with another type there (names both types);
// kUnsupported for .parquet in a build without Arrow.
Result<std::unique_ptr<RowReader>> open_rows(io::FileSystem& fs, const std::string& path, FileFormat format,
                                             const RowOptions& options, const RowPosition& start = {});

// An estimate of the bytes that the first `rows` of `all` rows take, as if all rows were equally long.
int64_t bytes_of_rows(int64_t file_bytes, int64_t rows, int64_t all);

// The message about a NUL byte at `offset`: such a file is not text.
std::string not_a_text(int64_t offset);

// The beginning of a message about a row: "file:line" for a .jsonl, "file: row 3" for a .parquet, else the
// file.
std::string row_place(const std::string& path, FileFormat format, int64_t number);

}  // namespace ostro::data
