// make_site: pages about a lab, finished or not, that open from a folder without scripts and load nothing:
// the question with all steps, the runs beside each other, each run, the data, the hypotheses, and the report
// of a finished lab.
#pragma once

#include <vector>

#include "ostro/lab/report/report.h"

namespace ostro::site {

// The pages, with names relative to the site's folder; index.html is the first. All texts are escaped. The
// same state gives the same bytes. Errors: those of reading outputs, and for a finished lab those of
// make_report.
Result<std::vector<lab::ReportFile>> make_site(io::FileSystem& fs, const lab::Plan& plan,
                                               const lab::LabState& state);

}  // namespace ostro::site
