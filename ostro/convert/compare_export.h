// compare_export: computes the files of an export again, compares them with a directory, and names what
// differs.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ostro/audit/verdict.h"
#include "ostro/convert/opened_export.h"

namespace ostro::convert {

struct ExportComparison {
  std::vector<audit::Finding> findings;
  std::vector<std::string> notes;  // of files for people (README, licences), which may be rewritten
  std::set<std::string> files;     // that were computed, by path below the directory
  int64_t bytes = 0;               // of these files that are equal
};

// `request` is complete, and has a type; `directory` is compared. With `with_provenance` its provenance.json,
// too. Errors: what keeps the export from being computed.
Result<ExportComparison> compare_export(const Context& context, const ExportRequest& request,
                                        const OpenedExport& opened, const std::string& directory,
                                        bool with_provenance);

}  // namespace ostro::convert
