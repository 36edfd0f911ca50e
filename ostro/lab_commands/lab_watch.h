// watch_lab: `ostro watch PLAN`: a lab while it goes on.
#pragma once

#include <string>

#include "ostro/context/context.h"

namespace ostro::cli {

// In a terminal until no process of this machine works on the lab; with `listen` (HOST:PORT) as a page in
// browsers, whose address is printed. Either ends at a signal. Reads only. Errors: as lab::look_live.
Status watch_lab(const Context& context, const std::string& plan_file, const std::string& listen, bool ascii);

}  // namespace ostro::cli
