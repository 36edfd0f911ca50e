#include "ostro/lab_commands/serve_pages.h"

#include <fmt/format.h>

#include "ostro/http/server.h"
#include "ostro/run/notice/signals.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/shared/waits.h"

namespace ostro::cli {

Status serve_pages(const Context& context, const std::string& listen, SiteServer::Make make,
                   SiteServer::OnDemand on_demand) {
  ASSIGN_OR_RETURN(const http::Address address, http::parse_address(listen));
  const run::StopSignals signals;
  Waits waits;
  ASSIGN_OR_RETURN(SiteServer pages, SiteServer::create(context.fs, std::move(make),
                                                        address.is_loopback() ? "" : http::new_token(),
                                                        std::chrono::seconds(2), std::move(on_demand)));
  ASSIGN_OR_RETURN(const auto server, http::Server::start(address, [&](const http::Request& request) {
                     return pages.answer(request);
                   }));
  RETURN_IF_ERROR(write_stdout(
      fmt::format("http://{}{}\n", host_and_port(address.host, server->port()), pages.first_path())));
  while (!signals.stop_requested()) waits.for_signal();
  return {};
}

}  // namespace ostro::cli
