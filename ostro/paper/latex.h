// latex_macros: the answers of a report as commands of LaTeX. A pure function.
#pragma once

#include <string>

#include "ostro/lab/report/values.h"

namespace ostro::paper {

// A file with \ostroNAME for each value, \ostroNAMEdigitsD (D from zero to nine) for it rounded to so many
// digits behind the point, \ostroverdictNAME for each hypothesis, and \ostrotableNAME, a tabular, for each
// table. A name of LaTeX has letters alone: digits become words ("best2" gives \ostrobesttwo), and what is
// neither is left out. What LaTeX would take for its own is escaped. Errors: two that would have one name.
Result<std::string> latex_macros(const lab::Values& values);

}  // namespace ostro::paper
