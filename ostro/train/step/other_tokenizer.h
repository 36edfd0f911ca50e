// warn_of_other_tokenizer: warns when weights and text have two different tokenizers. The ids then stand for
// other tokens than the weights were trained with, and nothing else would show it: shapes and sizes can be
// equal.
#pragma once

#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::train {

// Compares `used`, which was read from `used_path`, with the tokenizer that lies beside the weights at
// `from`: a run, a checkpoint, an import or a model's directory. A warning that begins with `key` names both.
// There is no warning when the weights have no tokenizer that can be read.
void warn_of_other_tokenizer(io::FileSystem& fs, const std::string& key, const std::string& from,
                             const tokenizer::Tokenizer& used, const std::string& used_path);

}  // namespace ostro::train
