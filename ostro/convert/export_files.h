// export_files, provenance_of, is_for_people: write the files of an export, and say what they were made of.
#pragma once

#include <map>
#include <string>

#include "ostro/convert/opened_export.h"
#include "ostro/provenance/provenance.h"

namespace ostro::convert {

// The request with the type of the weights where it says none: that of the directory of which the checkpoint
// is an import, else f32.
Result<ExportRequest> with_dtype(io::FileSystem& fs, ExportRequest request,
                                 const trained::LoadedModel& model);

// Writes all files but provenance.json into request.out: the model with its tokenizer and its chat template,
// or the adapter alone. `request` has a type (with_dtype).
Status export_files(const Context& context, const ExportRequest& request, const OpenedExport& opened);

// The provenance of these files, which export_files wrote.
Result<provenance::Provenance> provenance_of(io::FileSystem& fs, const ExportRequest& request,
                                             const OpenedExport& opened,
                                             std::map<std::string, provenance::FileDigest> files);

// Whether a file is text for people (README, LICENSE, NOTICE, USE_POLICY), which the holder of a model may
// rewrite.
bool is_for_people(const std::string& name);

}  // namespace ostro::convert
