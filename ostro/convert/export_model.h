// export_model: writes a model as a directory that other programs load, for `ostro export`.
#pragma once

#include <string>

#include "ostro/context/context.h"
#include "ostro/hf/export.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {

struct ExportRequest {
  std::string checkpoint, to, out, tokenizer, base;  // to: hf, peft or grok
  // The type of the weights: f32, bf16 or f16; for grok int8, bf16 or f32. Empty: the type in the directory
  // from which the checkpoint was imported, else f32; for grok int8.
  std::string dtype;
  int64_t shard_bytes = hf::kMaxFileBytes;
  bool merge_lora = false;
  trained::Trust trust = trained::Trust::kChain;
};

// The checkpoint from which the directory was made.
struct Exported {
  std::string path;
  int64_t step = 0;
};

// Returns the request with the names of types as they are written in files, and with the default of --dtype
// when that does not depend on the checkpoint. Error: kInvalidArgument for options that do not belong
// together.
Result<ExportRequest> complete_request(ExportRequest request);

// Call it before a run with adapters: it warns when export_model will refuse to write them for PEFT, and says
// why.
void warn_of_adapters(const train::TrainConfig& config);

// Writes the directory `out`: the model, its tokenizer and its chat template, or the adapter alone, and last
// provenance.json, which says what they were made from. Errors: kInvalidArgument for options that do not
// belong together, kUnsupported for a model that the format cannot hold, and those of reading and writing.
Result<Exported> export_model(const Context& context, const ExportRequest& request);

}  // namespace ostro::convert
