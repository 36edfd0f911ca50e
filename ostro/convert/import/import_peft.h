// import_peft: makes a checkpoint from an adapter of another program and a checkpoint of its base, for `ostro
// import --from peft`.
#pragma once

#include <string>

#include "ostro/context/context.h"

namespace ostro::convert {

struct PeftImport {
  std::string directory, checkpoint, out, tokenizer;  // tokenizer "": that of the checkpoint
};

// Makes the directory `out`: the model of the checkpoint with the adapter in `directory`, and a configuration
// to go on training it. Returns a line about it, for a person. If anything fails, there is no `out`. Errors:
// those of open_lora and take_lora; the checkpoint is no decoder, has an adapter already, or holds other
// parameters than the base that the adapter names by its hash.
Result<std::string> import_peft(const Context& context, const PeftImport& request);

}  // namespace ostro::convert
