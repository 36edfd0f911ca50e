// make_site: pages about a lab, finished or not, that open from a folder without scripts and load nothing:
// the question with all steps, the runs beside each other, each run, the data, the hypotheses, and the report
// of a finished lab.
#pragma once

#include <vector>

#include "ostro/lab/report/report.h"

namespace ostro::lab {

// The pages, with names relative to the site's folder; index.html is the first. All texts are escaped. The
// same state gives the same bytes. Errors: those of reading outputs, and for a finished lab those of
// make_report.
Result<std::vector<ReportFile>> make_site(io::FileSystem& fs, const Plan& plan, const LabState& state);
// The same with a report that is there already: of a finished lab the files of its report.
Result<std::vector<ReportFile>> make_site(io::FileSystem& fs, const Plan& plan, const LabState& state,
                                          const std::vector<ReportFile>& report);

}  // namespace ostro::lab
