// OpenedExport: the model that an export writes, opened. `ostro export` reads it before it writes, and the
// check of an exported directory computes the files from it again.
#pragma once

#include <optional>

#include "ostro/convert/export_model.h"
#include "ostro/models/decoder/decoder_options.h"

namespace ostro::convert {

struct OpenedExport {
  trained::LoadedModel model;  // has values only for a model with adapters, which must be in memory
  // weights: the weights that are written; nothing for an adapter alone. base: for a merge, the weights
  // before the adapter was added.
  std::optional<hf::WeightSource> weights, base;
};

// The decoder of a model. Error: kUnsupported when the model is no decoder, which no format can hold.
Result<const models::DecoderOptions*> decoder_of(const trained::LoadedModel& model);

// Opens the checkpoint of a complete request. Every byte of the parameters is compared with the checkpoint's
// hashes, and these with the chain. Errors: kInvalidArgument for options that do not fit the model or the
// directory; kUnsupported for a model that the format cannot hold; kCorrupt and kNotFound for the checkpoint.
Result<OpenedExport> open_export(const Context& context, const ExportRequest& request);

}  // namespace ostro::convert
