// `ostro import --from peft`: the adapter of another program, on a checkpoint of its base, as a checkpoint.
#pragma once

#include <string>

#include "ostro/context/context.h"

namespace ostro::convert {

struct PeftImport {
  std::string directory, checkpoint, out, tokenizer;  // no tokenizer: the checkpoint's
};

// Makes the directory `out`: the model of the checkpoint with the adapter in `directory`, and a configuration
// to go on training it. Returns a line that says what was made. If anything fails, there is no `out`. Errors:
// what open_lora and take_lora say; the checkpoint is no decoder, has an adapter already, or holds other
// parameters than the base that the adapter names by its hash.
Result<std::string> import_peft(const Context& context, const PeftImport& request);

}  // namespace ostro::convert
