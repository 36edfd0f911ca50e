// hypotheses_html: what came out of the hypotheses of a lab, and its registry, as HTML. Pure functions of the
// record. Private to reports and pages.
#pragma once

#include "ostro/lab/report/values.h"

namespace ostro::lab {

// The hypotheses with verdict, numbers, registration and beacon, and how the predictions held. Empty without
// hypotheses.
Result<std::string> hypotheses_html(const Database& record);

// The lines of the registry. Empty without any.
Result<std::string> registry_html(const Database& record);

}  // namespace ostro::lab
