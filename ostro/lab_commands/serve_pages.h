// serve_pages: gives pages of a lab to browsers until a signal comes: `ostro lab serve`, `ostro watch PLAN
// --listen`.
#pragma once

#include <string>

#include "ostro/context/context.h"
#include "ostro/lab_commands/site_server.h"

namespace ostro::cli {

// Prints the address of the first page, on an address that other machines reach with a token in it. `make`
// and `on_demand` are called in another thread, one at a time. Errors: an address that cannot be listened on.
Status serve_pages(const Context& context, const std::string& listen, SiteServer::Make make,
                   SiteServer::OnDemand on_demand = {});

}  // namespace ostro::cli
