// import_weights: imports a Hugging Face directory; its weights become a checkpoint.
#pragma once

#include <map>
#include <string>

#include "ostro/checkpoint/save.h"
#include "ostro/hf/source.h"

namespace ostro::hf {

// Writes the source's parameters as the checkpoint of step 0 below `root`: in bf16 where all tensors of a
// parameter are, else in f32; so no value is rounded. A cell of a stacked weight is a layer, or an expert of
// a layer. `info` is written as it is. Memory: the largest cell in f32 and bf16, and a block for each thread.
// Errors: a tensor that cannot be read, or has an element that is infinite or NaN; then there is no
// checkpoint.
Result<checkpoint::Saved> import_weights(io::FileSystem& fs, const Source& source, const std::string& root,
                                         const checkpoint::Info& info, int threads = 2);

// SHA-256 of the files of a directory that a checkpoint is made of (config.json and the weights), by name.
Result<std::map<std::string, std::string>> source_hashes(io::FileSystem& fs, const std::string& directory,
                                                         int threads = 2);
// Copies the files of tokenizer, generation and chat that a directory has, byte for byte. `but`: a file that
// is left out.
Status copy_companions(io::FileSystem& fs, const std::string& from, const std::string& to,
                       const std::string& but = "");
// Copies the companions of a source's directory. A tokenizer.json, tokenizer_config.json or
// generation_config.json that it lacks is made from its tokenizer (with what tokenizer_config() of
// model_files.h puts beside it), the last where generation ends after other tokens than the tokenizer's own.
Status copy_companions(io::FileSystem& fs, const Source& source, const std::string& to);

}  // namespace ostro::hf
