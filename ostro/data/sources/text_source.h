// Texts of source files as the documents that a tokenizer is trained on.
#pragma once

#include <string>
#include <vector>

#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::data {

// How far a source has been read, in bytes of the files as they lie on disk (RowReader::stored_bytes).
struct TextProgress {
  int64_t bytes_done = 0, bytes_total = 0;
};

// The documents that a build of a token store reads: rows of .jsonl, .ndjson, .json and .parquet, their text
// in `text_key`, and whole files, of which long ones come in parts (tokenizer::documents_of_files) whatever
// their size. Empty ones are passed over. Errors name file and row, and where it helps `option`, which sets
// `text_key`; a file with a NUL byte is one. `fs` must outlive the source, and
// so must `progress`, which it keeps up to date.
tokenizer::DocumentSource texts_of_sources(io::FileSystem& fs, std::vector<SourceFile> sources,
                                           std::string text_key, std::string option,
                                           TextProgress* progress = nullptr);

}  // namespace ostro::data
