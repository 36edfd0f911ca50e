// add_eval_files: reads evaluation documents for an EvalIndex.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/corpus_check/contamination.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"

namespace ostro::corpus_check {

// Adds a document for each row of .jsonl and .parquet, and for each other file. A row's text is the field,
// or, if `field` is empty, every string in the row. `key` is the option that names the files, for errors.
// Errors: those of reading; a row that is no JSON or lacks the field; .parquet without a field.
Status add_eval_files(io::FileSystem& fs, const std::vector<data::SourceFile>& files,
                      const std::string& field, const std::string& key, EvalIndex& index);

}  // namespace ostro::corpus_check
