// WatchServer: what `ostro watch --listen` answers: the page of a run, its facts as JSON, and whether it
// lives.
#pragma once

#include <string>

#include "ostro/cli/run/watch_view.h"
#include "ostro/context/context.h"
#include "ostro/http/gate.h"
#include "ostro/http/message.h"

namespace ostro::cli {

// Reads the run directory, and writes nothing. Used by one thread, that of the server.
class WatchServer {
 public:
  // `context` must outlive it. An empty token: for a loopback address.
  WatchServer(const Context& context, std::string run_directory, std::string token);

  // "/" the page, "/facts.json" what `ostro status --json` prints, "/health"; anything else is 404.
  http::Response answer(const http::Request& request);

 private:
  http::Response page();

  const Context& context_;
  const std::string run_directory_;
  const http::Gate gate_;
  Pace pace_;
  http::Response page_;  // the last one
};

}  // namespace ostro::cli
