// SiteServer: answers the requests to `ostro lab serve` and `ostro watch PLAN --listen`: the pages of a lab,
// made anew as it goes on.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "ostro/base/object_cache.h"
#include "ostro/http/gate.h"
#include "ostro/http/message.h"
#include "ostro/io/files/file_system.h"
#include "ostro/shell/shared/watch_view.h"

namespace ostro::cli {

// Keeps the pages in a folder of its own, which goes with it. Only the server's thread may use it.
class SiteServer {
 public:
  // Writes the pages into an empty folder.
  using Make = std::function<Status(const std::string& folder)>;

  // A file that the folder does not have, as "data/batches-1-KEY-step-7.js"; nothing: there is none.
  using OnDemand = std::function<Result<std::optional<std::string>>(const std::string& name)>;

  // `fs` must outlive it. Requests must have the token; it is empty for a loopback address, where none is
  // asked for. `least`: the time between two makings, at least. Error: no temporary folder can be made.
  static Result<SiteServer> create(io::FileSystem& fs, Make make, std::string token,
                                   std::chrono::milliseconds least = std::chrono::seconds(2),
                                   OnDemand on_demand = {});

  // "/" is the first page, other paths are those of the site's files. A path may begin with the token
  // ("/TOKEN/runs.html"), so that links between pages keep it. Pages are made anew for a request of one, so
  // rarely that it takes a twentieth of the time at most. Any other path is answered with 404. While pages
  // cannot be made, one is answered with 503 and the reason, and asks to be loaded again; other files are
  // those of the pages before.
  http::Response answer(const http::Request& request);

  // Where its first page is, behind the address.
  std::string first_path() const { return token_.empty() ? "/" : "/" + token_ + "/"; }

 private:
  SiteServer(io::FileSystem& fs, Make make, std::string token, std::chrono::milliseconds least,
             PrivateFolder scratch, OnDemand on_demand)
      : fs_(&fs),
        make_(std::move(make)),
        token_(std::move(token)),
        gate_(token_),
        pace_(least),
        scratch_(std::move(scratch)),
        on_demand_(std::move(on_demand)) {}
  Status make_anew();
  http::Response file(const std::string& name);

  io::FileSystem* fs_;
  Make make_;
  std::string token_;
  http::Gate gate_;
  Pace pace_;
  PrivateFolder scratch_;
  OnDemand on_demand_;
  int64_t made_ = 0;
  std::string folder_;           // of the pages; empty: none were made yet
  std::set<std::string> files_;  // below it
  std::string error_;            // why the pages cannot be made now; empty: they can
};

}  // namespace ostro::cli
