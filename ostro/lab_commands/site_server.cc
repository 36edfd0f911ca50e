#include "ostro/lab_commands/site_server.h"

#include <fmt/format.h>

#include "ostro/experiment/journal/output.h"
#include "ostro/io/files/path.h"

namespace ostro::cli {
namespace {

constexpr const char* kSecondsToNext = "20";  // until a browser asks again for a page that cannot be made

const char* type_of(const std::string& name) {
  for (const auto& [end, type] : {std::pair{".html", "text/html; charset=utf-8"},
                                  {".css", "text/css; charset=utf-8"},
                                  {".js", "text/javascript; charset=utf-8"},
                                  {".json", "application/json"},
                                  {".svg", "image/svg+xml"},
                                  {".pdf", "application/pdf"}})
    if (name.ends_with(end)) return type;
  return "application/octet-stream";
}

}  // namespace

Result<SiteServer> SiteServer::create(io::FileSystem& fs, Make make, std::string token,
                                      std::chrono::milliseconds least, OnDemand on_demand) {
  ASSIGN_OR_RETURN(PrivateFolder scratch, PrivateFolder::make(temporary_dir(), "ostro-site-"));
  return SiteServer(fs, std::move(make), std::move(token), least, std::move(scratch), std::move(on_demand));
}

Status SiteServer::make_anew() {
  const std::string folder = io::join_path(scratch_.path().string(), std::to_string(++made_));
  RETURN_IF_ERROR(fs_->make_dirs(folder));
  if (const Status made = make_(folder); !made.ok()) {
    (void)fs_->remove_all(folder);
    return made;
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> files, lab::files_below(*fs_, folder));
  if (!folder_.empty()) RETURN_IF_ERROR(fs_->remove_all(folder_));
  folder_ = folder;
  files_ = std::set<std::string>(files.begin(), files.end());
  return {};
}

http::Response SiteServer::file(const std::string& name) {
  const bool is_page = name.ends_with(".html");
  if (const auto begin = Pace::Clock::now(); (is_page || folder_.empty()) && pace_.is_due(begin)) {
    const Status made = make_anew();
    error_ = made.ok() ? "" : made.error().message();
    pace_.drawn(begin, Pace::Clock::now());
  }
  // A page says why there is no newer one, and is loaded again; a former page still has its script.
  if (!error_.empty() && (is_page || folder_.empty())) {
    http::Response out{503, "text/plain; charset=utf-8", error_ + "\n"};
    if (is_page) out.headers.emplace_back("Refresh", kSecondsToNext);
    return out;
  }
  if (!files_.contains(name)) {
    Result<std::optional<std::string>> made = std::optional<std::string>();
    if (on_demand_) made = on_demand_(name);
    if (!made.ok()) return {503, "text/plain; charset=utf-8", made.error().message() + "\n"};
    if (!*made) return {404, "text/plain; charset=utf-8", "the site has no such file\n"};
    return {200, type_of(name), std::move(**made)};
  }
  auto bytes = fs_->read_file(io::join_path(folder_, name));
  if (!bytes.ok()) return {503, "text/plain; charset=utf-8", bytes.error().message() + "\n"};
  return {200, type_of(name), std::move(*bytes)};
}

http::Response SiteServer::answer(const http::Request& request) {
  http::Request asked = request;
  if (const std::string begin = first_path(); !token_.empty() && asked.path.starts_with(begin)) {
    asked.query["token"] = token_;
    asked.path = asked.path.substr(begin.size() - 1);
  }
  if (auto refusal = gate_.refusal(asked)) return *refusal;
  if (asked.path == "/health") return {200, "text/plain; charset=utf-8", "ok\n"};
  const std::string name = asked.path.empty() ? "" : asked.path.substr(1);
  return file(name.empty() ? "index.html" : name);
}

}  // namespace ostro::cli
