// import_grok: makes a checkpoint from a directory in the layout of Grok-1's release, for `ostro import
// --from grok`.
#pragma once

#include <string>

#include "ostro/base/error.h"
#include "ostro/context/context.h"

namespace ostro::convert {

struct GrokImport {
  std::string directory, config, out, tokenizer;
  std::string layers;              // "0:4"; empty: all
  std::string dtype = "f32";       // or bf16, int8
  std::string rounding = "ostro";  // or released
};

// Writes `out`/checkpoints/step-00000000, and with a tokenizer `out`/tokenizer.json. Returns a line about it,
// for a person. Errors: kInvalidArgument for options that cannot be, and those of reading the release and of
// writing.
Result<std::string> import_grok(const Context& context, const GrokImport& request);

}  // namespace ostro::convert
