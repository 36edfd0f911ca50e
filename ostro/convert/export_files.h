// export_files, provenance_of: write the files of an export, and describe what they were made from. Errors:
// kUnsupported for a model or an adapter that has no form in Hugging Face directories; kCorrupt for a record
// that does not fit the checkpoint; those of reading and writing.
#pragma once

#include <map>
#include <string>

#include "ostro/convert/opened_export.h"
#include "ostro/provenance/provenance.h"

namespace ostro::convert {

// Returns the request with a type of the weights. When it has none, that is the type in the directory from
// which the checkpoint was imported, else f32.
Result<ExportRequest> with_dtype(io::FileSystem& fs, ExportRequest request,
                                 const trained::LoadedModel& model);

// Writes all files but provenance.json into request.out: the model with its tokenizer and its chat template,
// or the adapter alone. `request` has a type (with_dtype).
Status export_files(const Context& context, const ExportRequest& request, const OpenedExport& opened);

// Returns the provenance of `files`, which export_files wrote.
Result<provenance::Provenance> provenance_of(io::FileSystem& fs, const ExportRequest& request,
                                             const OpenedExport& opened,
                                             std::map<std::string, provenance::FileDigest> files);

// Returns true for a file for people (README, LICENSE, NOTICE, USE_POLICY), which the holder of a model may
// rewrite.
bool is_for_people(const std::string& name);

}  // namespace ostro::convert
