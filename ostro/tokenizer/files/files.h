// Tokenizers and training documents in files.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/files/trainer.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

// Reads a tokenizer.json, or a SentencePiece model (a file whose name ends in .model), or the tokenizer.json
// or else the tokenizer.model of a directory. A tokenizer_config.json beside it says which tokens end and
// begin a document (Tokenizer::eos_id, bos_id), and for a model whether add_special_tokens adds them.
Result<Tokenizer> load_tokenizer(io::FileSystem& files, const std::string& path);

// Writes the tokenizer.json at `path`, atomically, and nothing else.
Status save_tokenizer(io::FileSystem& files, const Tokenizer& tokenizer, const std::string& path);

// The files in the order of `paths`. One of more than `part_bytes` comes as several documents, cut where it
// changes no splitter's pieces (last_cut), so that memory does not grow with the file; only Splitter::kNone
// sees the difference. `files` must outlive the source.
DocumentSource documents_of_files(io::FileSystem& files, std::vector<std::string> paths,
                                  size_t part_bytes = size_t{16} << 20);

}  // namespace ostro::tokenizer
