// open_from_weights: opens an export whose parameters are read from the exported f32 weights themselves,
// because only the manifest of its checkpoint is left.
#pragma once

#include <string>

#include "ostro/convert/opened_export.h"

namespace ostro::convert {

// `request` is that of the export, `model` its directory. Hashes every cell of every parameter from the
// weights and compares it with the checkpoint's manifest. The manifest must be what the chain says; it also
// has the hashes of the moments, so it gives the state's name. Error: kCorrupt, with the first cell that
// differs.
Result<OpenedExport> open_from_weights(const Context& context, const ExportRequest& request,
                                       const std::string& model);

}  // namespace ostro::convert
