// texts_of_sources: gives the texts of source files, as documents to train a tokenizer on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/data/rows/row_verdicts.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::data {

// Progress of reading, in bytes of the stored files (RowReader::stored_bytes).
struct TextProgress {
  int64_t bytes_done = 0, bytes_total = 0;
};

// The documents that a build of a token store reads: the text in field `text_key` of each row of .jsonl,
// .ndjson, .json and .parquet, and whole text files. Long text files come in parts of limited size
// (tokenizer::documents_of_files). Empty documents are skipped. Errors name file and row and, where it helps,
// `option`, which sets `text_key`; a NUL byte in a file is an error. `fs` and `progress` must outlive the
// source, which keeps `progress` up to date. Rows that `verdicts`,
// those of the sources in order, leave out are not given.
tokenizer::DocumentSource texts_of_sources(io::FileSystem& fs, std::vector<SourceFile> sources,
                                           std::string text_key, std::string option,
                                           TextProgress* progress = nullptr,
                                           std::shared_ptr<const RowVerdicts> verdicts = nullptr);

}  // namespace ostro::data
