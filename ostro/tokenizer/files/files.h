// load_tokenizer, save_tokenizer, documents_of_files: read and write tokenizer files, and read training
// documents from files. Errors name the path.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/files/trainer.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::tokenizer {

// Reads a tokenizer. `path` is a tokenizer.json, a SentencePiece model (its name ends in .model), or a
// directory with a tokenizer.json or else a tokenizer.model. The files beside it (companions.h) name the
// tokens that end and begin a document (Tokenizer::eos_id, bos_id), further added tokens, and where
// generation ends. For a .model they also say whether add_special_tokens adds the first two.
Result<Tokenizer> load_tokenizer(io::FileSystem& files, const std::string& path);

// Writes the tokenizer.json at `path`, atomically, and no file beside it.
Status save_tokenizer(io::FileSystem& files, const Tokenizer& tokenizer, const std::string& path);

// The documents of files, in the order of `paths`. A file of more than `part_bytes` is given as several
// documents, so that memory does not grow with the file. It is cut where no splitter's pieces change
// (last_cut); only Splitter::kNone gives another result. `files` must outlive the source.
DocumentSource documents_of_files(io::FileSystem& files, std::vector<std::string> paths,
                                  size_t part_bytes = size_t{16} << 20);

}  // namespace ostro::tokenizer
