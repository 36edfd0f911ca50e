// export_grok: writes a checkpoint in the layout of Grok-1's release, for `ostro export --to grok`.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/progress.h"
#include "ostro/grok/layout/leaves.h"
#include "ostro/hf/export.h"
#include "ostro/io/files/file_system.h"
#include "ostro/models/decoder/decoder_options.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::convert {

// Checks that an export is possible. `dtype` is the type of matrices: int8, bf16 or f32. Errors: kUnsupported
// for a model that the layout cannot hold or that has an adapter; kInvalidArgument when `out`/ckpt-0 exists.
Status check_grok_export(io::FileSystem& fs, const std::string& out, const trained::LoadedModel& model,
                         const models::DecoderOptions& decoder, const std::string& dtype);

// Writes `out`/ckpt-0 and `out`/tokenizer.json. Call check_grok_export first. Errors: those of reading and
// writing.
Status export_grok(io::FileSystem& fs, const std::string& out, const trained::LoadedModel& model,
                   const models::DecoderOptions& decoder, const hf::WeightSource& source,
                   const std::string& dtype, Progress& progress);

// Returns the tensors of such a release: their files, and the places of the elements in them. Errors: as
// check_grok_export.
Result<std::vector<grok::Leaf>> grok_leaves(const trained::LoadedModel& model,
                                            const models::DecoderOptions& decoder, const std::string& dtype);
inline constexpr const char* kGrokFolder = "ckpt-0";  // the folder in `out`

}  // namespace ostro::convert
