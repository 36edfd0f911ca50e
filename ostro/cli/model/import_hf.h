// ostro import --from hf
#pragma once

#include <string>

#include "ostro/base/error.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {

struct HfImport {
  std::string directory, out, tokenizer;  // no tokenizer: the directory's
};

// Makes the directory `out`: a checkpoint of the model in `directory`, what came with it, and a configuration
// to go on training with. Returns what there is to say about it, in a line. If anything fails, there is no
// `out`.
Result<std::string> import_hf(const HfImport& request, const train::ModelChoices& models);

}  // namespace ostro::cli
