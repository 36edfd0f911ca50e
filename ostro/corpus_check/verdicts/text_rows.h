// each_text: the texts of a data set's rows, for what decides which of them are taken.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ostro/data/rows/row_verdicts.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"

namespace ostro::corpus_check {

// The files of a data set, and what was said of their rows before.
struct TextRows {
  std::vector<data::SourceFile> files;
  std::vector<std::string> names;                   // of the files, for people
  std::vector<std::string> sha256;                  // of the files
  std::string text_key;                             // the field of a row that holds its text
  std::shared_ptr<const data::RowVerdicts> before;  // null: all rows are taken so far
};

// A text and where it stands.
struct TextRow {
  size_t file = 0;
  int64_t row = 0;
  std::string text;
};

// Calls take(batch) with the rows that are taken so far, in order, in batches of some MiB. Rows without a
// text are left out; nothing is said of them. Returns the verdicts so far on all files, with their numbers of
// rows. Errors: those of reading; a row that is no JSON or has no text in the field; verdicts on other files.
Result<data::RowVerdicts> each_text(io::FileSystem& fs, const TextRows& rows,
                                    const std::function<Status(std::vector<TextRow>&)>& take);

// Adds what is said of rows (of which nothing was said before, or only a value) and sorts by row.
void add_verdicts(data::FileVerdicts& file, std::vector<data::RowVerdict> more);

}  // namespace ostro::corpus_check
