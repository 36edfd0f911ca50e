// WatchServer: answers the requests to `ostro watch --listen`: the page of a run, its facts as JSON, and that
// the server is alive.
#pragma once

#include <string>

#include "ostro/context/context.h"
#include "ostro/http/gate.h"
#include "ostro/http/message.h"
#include "ostro/shell/shared/watch_view.h"

namespace ostro::cli {

// Reads the run directory and writes nothing. Only the server's thread may use it.
class WatchServer {
 public:
  // `context` must outlive it. Requests must have the token; it is empty for a loopback address, where none
  // is asked for.
  WatchServer(const Context& context, std::string run_directory, std::string token);

  // "/" is the page, "/facts.json" the text of `ostro status --json`, "/metrics" the figures for Prometheus
  // that are in the files of the run, "/health" a short text. Any other path
  // is answered with 404, a run that cannot be read with the reason.
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
