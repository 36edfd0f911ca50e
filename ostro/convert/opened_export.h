// OpenedExport: the model that an export writes, opened: what `ostro export` reads before it writes, and what
// a check of an exported directory computes it again from.
#pragma once

#include <optional>
#include <string>

#include "ostro/convert/export_model.h"
#include "ostro/models/decoder/decoder_options.h"

namespace ostro::convert {

struct OpenedExport {
  trained::LoadedModel model;  // with values only where they have to be in memory: adapters
  // What is written, unless it is an adapter alone; and of a merge the weights before the adapter was added.
  std::optional<hf::WeightSource> weights, base;
};

// The decoder of a model. Error kUnsupported: it is none, so no format holds it.
Result<const models::DecoderOptions*> decoder_of(const trained::LoadedModel& model);

// Opens the checkpoint of a complete request. Every byte of the parameters is compared with the checkpoint's
// hashes, and these with the chain. Errors: kInvalidArgument for options that do not fit the model or the
// directory, kUnsupported for a model that the format cannot hold, kCorrupt and kNotFound of the checkpoint.
Result<OpenedExport> open_export(const Context& context, const ExportRequest& request);

}  // namespace ostro::convert
