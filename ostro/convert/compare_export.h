// compare_export: computes the files of an export again, compares them with a directory, and names the
// differences.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ostro/audit/verdict.h"
#include "ostro/convert/opened_export.h"

namespace ostro::convert {

struct ExportComparison {
  std::vector<audit::Finding> findings;
  std::vector<std::string>
      notes;                    // differences of files for people (README, licences), which may be rewritten
  std::set<std::string> files;  // the files that were computed, by path below the directory
  int64_t bytes = 0;            // the bytes of those that are equal
};

// Compares the files of `directory`, and with `with_provenance` also its provenance.json. `request` must be
// complete and have a type (with_dtype). Errors: those of computing the export.
Result<ExportComparison> compare_export(const Context& context, const ExportRequest& request,
                                        const OpenedExport& opened, const std::string& directory,
                                        bool with_provenance);

}  // namespace ostro::convert
