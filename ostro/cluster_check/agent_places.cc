#include "ostro/cluster_check/agent_places.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "ostro/base/host_name.h"
#include "ostro/io/files/path.h"
#include "ostro/io/files/write_rate.h"
#include "ostro/io/hub/hub_names.h"
#include "ostro/objects/s3/store_probe.h"

namespace ostro::cluster_check {
namespace {

using PlaceJson = nlohmann::json;

constexpr std::chrono::milliseconds kMarkerPatience{5000}, kMarkerLook{50};

// Of the disk that has the folder; 0: not known.
int64_t free_bytes(const std::string& folder) {
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0) return 0;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

// A name that no other agent has; agents of one check may share the folder.
std::string own_name(const std::string& marker) {
  return fmt::format("{}.{}.{}", marker.empty() ? ".ostro-check" : marker, host_name(), ::getpid());
}

}  // namespace

Result<PlaceJson> answer_path(io::FileSystem& fs, const PlaceJson& asked) {
  const std::string folder = asked.value("path", "");
  const std::string file = io::join_path(folder, asked.value("marker", ""));
  // A network file system may show a new file late.
  const auto until = std::chrono::steady_clock::now() + kMarkerPatience;
  bool seen = false;
  while (true) {
    const auto there = fs.exists(file);
    seen = there.ok() && *there;
    if (seen || std::chrono::steady_clock::now() >= until) break;
    std::this_thread::sleep_for(kMarkerLook);
  }
  PlaceJson out = {{"seen", seen}};
  if (!seen) {
    const auto there = fs.exists(folder);
    out["exists"] = there.ok() && *there;
    return out;
  }
  const auto lock = fs.lock(file, "a check of the cluster");
  out["locked"] = !lock.ok() && lock.error().code() == ErrorCode::kBusy;
  out["free"] = free_bytes(folder);
  ASSIGN_OR_RETURN(out["write_rate"], io::write_rate(fs, own_name(file)));
  return out;
}

bool is_store_variable(std::string_view name) {
  return name.starts_with("AWS_") || name == "OSTRO_S3_STALL_SECONDS" || name == "OSTRO_S3_LEASE_SECONDS";
}

Result<PlaceJson> set_variables(const PlaceJson& asked) {
  const PlaceJson variables = asked.value("set", PlaceJson::object());
  for (const auto& [name, value] : variables.items()) {
    if (!value.is_string() || !is_store_variable(name))
      return invalid_argument(fmt::format("{} is no variable of an object store", name));
    ::setenv(name.c_str(), value.get<std::string>().c_str(), /*overwrite=*/1);
  }
  ::setenv("AWS_MAX_ATTEMPTS", "3", /*overwrite=*/0);  // a check does not wait for minutes
  return PlaceJson::object();
}

Result<PlaceJson> answer_store(const PlaceJson& asked) {
  const std::string path = asked.value("path", ""), marker = asked.value("marker", "");
  if (io::path_scheme(path) != "s3://") return invalid_argument(fmt::format("{} is not at s3://", path));
  ASSIGN_OR_RETURN(const objects::StoreProbe probe,
                   objects::probe_store_from_environment(path, own_name(marker), marker));
  return PlaceJson{{"server", probe.server}, {"keys", probe.keys}, {"seen", probe.seen}};
}

Result<PlaceJson> answer_read(io::FileSystem& fs, const PlaceJson& asked) {
  const std::string path = asked.value("path", "");
  ASSIGN_OR_RETURN(const bool there, fs.exists(path));
  const bool local = io::path_scheme(path).empty();
  return PlaceJson{{"there", there},
                   {"hub", !there && local && io::is_hub_name(path)},
                   {"folder", io::absolute_path(".")}};
}

Result<PlaceJson> answer_disk(io::FileSystem& fs, const PlaceJson& asked) {
  const std::string path = io::absolute_path(asked.value("path", ""));
  // What is not there yet is made by the run, in the nearest folder that is.
  std::string at = path;
  auto info = fs.stat(at);
  for (; !info.ok() && at != "/"; info = fs.stat(at)) at = io::parent_path(at);
  if (!info.ok()) return info.error();
  if (!info->is_directory)
    return invalid_argument(
        fmt::format("{}: {} is a file, so no folder can be made there; name another one", path, at));
  const std::string file = io::join_path(at, own_name(asked.value("marker", "")));
  const Status written = fs.write_file(file, "a check of the cluster\n");
  (void)fs.remove(file);
  if (!written.ok())
    return io_error(
        fmt::format("{}: nothing can be written in {} ({}); let the user of the run write there, "
                    "or name another folder",
                    path, at, written.error().message()));
  return PlaceJson{{"path", path}, {"free", free_bytes(at)}};
}

}  // namespace ostro::cluster_check
