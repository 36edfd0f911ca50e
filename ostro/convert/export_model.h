// `ostro export`: a model as a directory that other programs load.
#pragma once

#include <string>

#include "ostro/context/context.h"
#include "ostro/hf/export.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {

struct ExportRequest {
  std::string checkpoint, to, out, tokenizer, base;  // to: hf, peft or grok
  // Of the weights: f32, bf16 or f16, with `to` grok int8, bf16 or f32. Empty: that of the directory of which
  // the checkpoint is an import, else f32; with grok int8.
  std::string dtype;
  int64_t shard_bytes = hf::kMaxFileBytes;
  bool merge_lora = false;
  trained::Trust trust = trained::Trust::kChain;
};

// The checkpoint of which the directory was made.
struct Exported {
  std::string path;
  int64_t step = 0;
};

// The request with the default of --dtype where that does not depend on the checkpoint, and types as they are
// written. Error kInvalidArgument: options that do not belong together.
Result<ExportRequest> complete_request(ExportRequest request);

// Before a run with adapters: warns if export_model will refuse to write them for PEFT, and says why.
void warn_of_adapters(const train::TrainConfig& config);

// Writes the directory `out`: the model, its tokenizer and its chat template, or the adapter alone, and last
// provenance.json, which says what they were made of. Errors:
// kInvalidArgument for options that do not belong together, kUnsupported for a model that the format cannot
// hold.
Result<Exported> export_model(const Context& context, const ExportRequest& request);

}  // namespace ostro::convert
