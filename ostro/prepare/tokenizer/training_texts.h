// training_texts: the texts that the tokenizer of a data set is trained on: its training documents, without
// the held-out ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/data/options/options.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::prepare {

// The training files of one component, with the options that choose the documents.
struct TrainingFiles {
  std::vector<data::SourceFile> files;
  std::string text_key, text_key_option;  // the option is for messages
  double held_out_fraction = 0;           // 0 with validation_urls
};

// The training files of all components. Errors: a component whose rows are not texts, as no tokenizer can be
// trained on them; those of find_sources.
Result<std::vector<TrainingFiles>> training_files(io::FileSystem& fs, const data::DataOptions& options);

// The results of reading them besides the documents.
struct TrainingTextsRead {
  int64_t bytes_done = 0, bytes_total = 0;       // of the files as they are stored
  int64_t documents = 0, text_bytes = 0;         // of documents that were handed out
  std::vector<std::vector<std::string>> sha256;  // of every file, by component
};

// The documents one after another. With `skip_bad_rows` a row that cannot be read is left out; else it is an
// error with file and row, as in a build of the store. A file that changes meanwhile is an error. The
// arguments must outlive the source.
tokenizer::DocumentSource training_texts(io::FileSystem& fs, const std::vector<TrainingFiles>& components,
                                         bool skip_bad_rows, TrainingTextsRead& read);

}  // namespace ostro::prepare
