// open_from_weights: an export whose parameters are read from the exported f32 weights themselves, where the
// checkpoint has only its manifest left.
#pragma once

#include <string>

#include "ostro/convert/opened_export.h"

namespace ostro::convert {

// `request` is that of the export, `model` its directory. Every cell of every parameter is hashed from the
// weights and compared with the checkpoint's manifest, which must be what the chain says: with the moments'
// hashes there it gives the state's name. Error kCorrupt names the first cell that differs.
Result<OpenedExport> open_from_weights(const Context& context, const ExportRequest& request,
                                       const std::string& model);

}  // namespace ostro::convert
