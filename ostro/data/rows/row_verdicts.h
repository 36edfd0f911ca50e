// RowVerdicts: which rows of source files a data set takes and which it leaves out, with the reason of each.
//
// They are in a file beside the texts, so nothing is copied (docs/reference/formats/rows.md). A value; const
// use is thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

// What is said of one row. A row of which nothing is said is taken.
struct RowVerdict {
  int64_t row = 0;              // its number in the file, from 1, as Row::number
  std::string drop;             // the reason why it is left out, a word; empty: it is taken
  std::string of;               // the place of what it repeats, for people: "a.jsonl:3"; empty: none
  std::optional<double> value;  // the figure that decided, or the score of a row that is taken
  bool operator==(const RowVerdict&) const = default;
};

struct FileVerdicts {
  std::string file;              // its name, for people
  std::string sha256;            // of the file's bytes
  int64_t rows = 0;              // the number of its last row; of all files at most INT64_MAX
  std::vector<RowVerdict> said;  // ascending by row
  bool operator==(const FileVerdicts&) const = default;

  bool drops(int64_t row) const;
  // How many rows are left out, by reason.
  std::map<std::string, int64_t> reasons() const;
};

struct RowVerdicts {
  std::vector<FileVerdicts> files;  // in the order in which a data set reads them
  bool operator==(const RowVerdicts&) const = default;

  // SHA-256 over the rows that are left out of `count` files from `first` on: a line "SHA256-OF-THE-FILE
  // ROW\n" for each, in order; of the Nth file with the same bytes, N from 2 on, "SHA256-OF-THE-FILE ROW
  // N\n". Empty when none is. Reasons and values are not in it: the same rows give the same data.
  std::string left_out(size_t first = 0, size_t count = SIZE_MAX) const;
};

// Reads the file. Errors: kNotFound; kCorrupt, with the line, when it was cut or changed.
Result<RowVerdicts> read_row_verdicts(io::FileSystem& fs, const std::string& path);
Status write_row_verdicts(io::FileSystem& fs, const std::string& path, const RowVerdicts& verdicts);

// That the verdicts are those of files with these hashes, in this order. `path` and `key` (the option) are
// for the error, which names the first file that differs.
Status check_files_of_verdicts(const RowVerdicts& verdicts, const std::string& path, const std::string& key,
                               const std::vector<std::pair<std::string, std::string>>& files);
// That a file has as many rows as its verdicts say.
Status check_rows_of_verdicts(const FileVerdicts& verdicts, const std::string& file, int64_t rows);

}  // namespace ostro::data
