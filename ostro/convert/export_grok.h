// `ostro export --to grok`: a checkpoint in the layout of Grok-1's release.
#pragma once

#include <string>

#include "ostro/base/progress.h"
#include "ostro/hf/export.h"
#include "ostro/io/files/file_system.h"
#include "ostro/models/decoder/decoder_options.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {

// Whether an export is possible; `dtype` is that of matrices: int8, bf16 or f32. Errors: kUnsupported for a
// model that the layout cannot hold or that has an adapter, kInvalidArgument when `out`/ckpt-0 exists.
Status check_grok_export(io::FileSystem& fs, const std::string& out, const trained::LoadedModel& model,
                         const models::DecoderOptions& decoder, const std::string& dtype);

// Writes `out`/ckpt-0 and `out`/tokenizer.json, after check_grok_export.
Status export_grok(io::FileSystem& fs, const std::string& out, const trained::LoadedModel& model,
                   const models::DecoderOptions& decoder, const hf::WeightSource& source,
                   const std::string& dtype, Progress& progress);

}  // namespace ostro::convert
