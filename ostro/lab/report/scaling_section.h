// scaling_html: the fits of a lab with their runs and curves, and its forecasts with what came out, as HTML.
// A pure function of the record. Private to reports and pages.
#pragma once

#include "ostro/lab/report/values.h"

namespace ostro::lab {

// Empty without a fit.
Result<std::string> scaling_html(const Database& record);

}  // namespace ostro::lab
