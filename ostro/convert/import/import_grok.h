// `ostro import --from grok`: a directory in the layout of Grok-1's release as a checkpoint.
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

// Writes `out`/checkpoints/step-00000000, and with a tokenizer `out`/tokenizer.json. Returns a line that says
// what was made.
Result<std::string> import_grok(const Context& context, const GrokImport& request);

}  // namespace ostro::convert
