// write_site: writes pages about a lab, finished or not, that open from a folder and ask for nothing outside
// of it: the question with all steps, the runs beside each other, each run, two runs compared, the data, the
// hypotheses, and the report of a finished lab.
#pragma once

#include "ostro/context/context.h"
#include "ostro/lab/drive/driver.h"

namespace ostro::site {

struct SiteRequest {
  // Sessions and seconds, too, which are other ones wherever the lab was done.
  bool measured = false;
  // The beginnings of texts under licences that the plan marks; false: no text, whatever the plan says.
  bool texts = true;
};

// Writes the pages into the folder `out`, index.html first; returns the number of files. All texts are
// escaped. The same state gives the same bytes, whatever threads, locale and folder. Errors: those of reading
// outputs and of writing, and for a finished lab those of make_report.
Result<int64_t> write_site(const Context& context, const lab::Plan& plan, const lab::LabState& state,
                           const SiteRequest& request, const std::string& out);

}  // namespace ostro::site
