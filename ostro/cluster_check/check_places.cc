#include "ostro/cluster_check/check_places.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "ostro/base/host_name.h"
#include "ostro/cluster/wire/worker_variables.h"
#include "ostro/cluster_check/agent_places.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/store_probe.h"

namespace ostro::cluster_check {
namespace {

constexpr int64_t kLowSpace = int64_t{1} << 30;

class Places {
 public:
  explicit Places(Machines& machines) : m_(machines), fs_(machines.context().fs) {}

  Status all() {
    const CheckRequest& request = m_.request();
    for (const std::string& folder : request.folders)
      if (!m_.context().stop()) RETURN_IF_ERROR(folder_of_all(folder));
    if (uses_stores()) give_variables();
    for (const NamedPath& store : request.stores)
      if (!m_.context().stop()) store_of_all(store);
    for (const NamedPath& one : request.readable) read_by_all(one);
    for (const NamedPath& one : request.disks) disk_of_each(one);
    return {};
  }

 private:
  static std::string new_marker() { return fmt::format(".ostro-check-{}", new_key().substr(0, 16)); }

  // A file that this machine makes and locks must be seen, and its lock held, everywhere.
  Status folder_of_all(const std::string& folder) {
    RETURN_IF_ERROR(fs_.make_dirs(folder));
    const std::string marker = new_marker();
    const std::string path = io::join_path(folder, marker);
    auto lock = fs_.lock(path, "a check of the cluster");
    if (!lock.ok()) return lock.error();
    RETURN_IF_ERROR(fs_.sync_dir(folder));
    m_.each("folders", [&](size_t i) { m_.ask(i, {{"do", "path"}, {"path", folder}, {"marker", marker}}); });
    m_.each("folders", [&](size_t i) { compare_folder(i, folder); });
    lock->reset();
    // Programs that are cut off cannot remove the files that they try the disk with.
    if (m_.context().stop()) m_.end();
    return remove_files(folder, marker);
  }

  void compare_folder(size_t i, const std::string& folder) {
    const auto seen = m_.answer(i, kLongPatience, fmt::format("{}: ", folder));
    if (!seen) return;
    if (!seen->value("seen", false)) {
      m_.problem(
          i, fmt::format("{}: {}, so a file that was made here is not there; mount one file system there on "
                         "all machines",
                         folder,
                         seen->value("exists", false) ? "is another folder" : "there is no such folder"));
      return;
    }
    if (!seen->value("locked", false))
      m_.problem(
          i, fmt::format("{}: locks of other machines are not seen there, so that two jobs could write one "
                         "run; mount it with locks (NFSv4, or `nolock` left out)",
                         folder));
    CheckedFolder& checked = m_.report().hosts[i].folders.emplace_back();
    checked = {folder, seen->value("free", int64_t{0}), seen->value("write_rate", 0.0)};
    warn_of_space(i, checked);
  }

  void warn_of_space(size_t i, const CheckedFolder& folder) {
    if (folder.free < kLowSpace)
      m_.note(i, fmt::format("{}: only {} MiB are free", folder.path, folder.free >> 20));
  }

  // Removes the files of the folder whose names begin so.
  Status remove_files(const std::string& folder, const std::string& begin) const {
    ASSIGN_OR_RETURN(const auto entries, fs_.list(folder));
    for (const io::DirEntry& entry : entries) {
      if (!entry.name.starts_with(begin)) continue;
      const Status removed = fs_.remove(io::join_path(folder, entry.name));
      if (!removed.ok() && removed.error().code() != ErrorCode::kNotFound) return removed;
    }
    return {};
  }

  bool uses_stores() const {
    const CheckRequest& request = m_.request();
    return !request.stores.empty() ||
           std::any_of(request.readable.begin(), request.readable.end(),
                       [](const NamedPath& one) { return !io::path_scheme(one.path).empty(); });
  }

  // What ostro launch ssh gives its workers to reach a store, through standard input as it does.
  void give_variables() {
    std::istringstream in(cluster::worker_variables(environ));
    CheckJson variables = CheckJson::object();
    for (std::string line; std::getline(in, line);) {
      const size_t equal = line.find('=');
      if (equal != std::string::npos && is_store_variable(std::string_view(line).substr(0, equal)))
        variables[line.substr(0, equal)] = line.substr(equal + 1);
    }
    m_.each("object stores", [&](size_t i) {
      if (m_.ask(i, {{"do", "variables"}, {"set", variables}})) (void)m_.answer(i, kShortPatience, "");
    });
  }

  // Each machine writes, reads and removes an object of its own there, and sees one that this machine made.
  void store_of_all(const NamedPath& store) {
    const std::string marker = new_marker();
    const std::string about = fmt::format("{} ({}): ", store.path, store.option);
    const std::string path = io::join_path(store.path, marker);
    const auto here = objects::probe_store_from_environment(store.path, marker + ".here", "");
    Status made = here.ok() ? fs_.write_file(path, "a check of the cluster\n") : Status(here.error());
    if (!made.ok()) {
      m_.report().problems.push_back(
          fmt::format("this machine ({}): {}{}", host_name(), about, made.error().message()));
    }
    const std::string seen = made.ok() ? marker : "";
    m_.each("object stores",
            [&](size_t i) { m_.ask(i, {{"do", "store"}, {"path", store.path}, {"marker", seen}}); });
    m_.each("object stores", [&](size_t i) {
      const auto told = m_.answer(i, kLongPatience, about);
      if (!told) return;
      if (!seen.empty() && !told->value("seen", false))
        m_.problem(i, fmt::format("{}at {} is another store than at {}: an object that was made here is not "
                                  "there; give all machines one AWS_ENDPOINT_URL",
                                  about, told->value("server", ""), here->server));
      m_.report().hosts[i].stores.push_back({store.path, told->value("server", ""), told->value("keys", "")});
    });
    if (!made.ok()) return;
    // Programs that are cut off, by a stop or since they did not answer, cannot remove what they made.
    if (m_.context().stop()) m_.end();
    const Status gone = remove_files(store.path, marker);
    if (!gone.ok())
      m_.report().problems.push_back(
          fmt::format("this machine ({}): {}{}", host_name(), about, gone.error().message()));
  }

  void read_by_all(const NamedPath& one) {
    m_.each("files", [&](size_t i) { m_.ask(i, {{"do", "read"}, {"path", one.path}}); });
    m_.each("files", [&](size_t i) {
      const auto told = m_.answer(i, kLongPatience, fmt::format("{}: ", one.option));
      if (!told || told->value("there", false)) return;
      if (told->value("hub", false))
        m_.note(i, fmt::format("{}: {} is not there, and is taken for a name of the hub, which that machine "
                               "fetches when it begins",
                               one.option, one.path));
      else
        m_.problem(i, fmt::format("{}: there is no {} at that machine, whose programs run in {}; copy it "
                                  "there, or name a place that all machines have",
                                  one.option, one.path, told->value("folder", "")));
    });
  }

  void disk_of_each(const NamedPath& one) {
    const std::string marker = new_marker();
    m_.each("disks", [&](size_t i) { m_.ask(i, {{"do", "disk"}, {"path", one.path}, {"marker", marker}}); });
    m_.each("disks", [&](size_t i) {
      const auto told = m_.answer(i, kLongPatience, fmt::format("{}: ", one.option));
      if (!told) return;
      CheckedFolder& checked = m_.report().hosts[i].disks.emplace_back();
      checked.path = told->value("path", one.path), checked.free = told->value("free", int64_t{0});
      warn_of_space(i, checked);
    });
  }

  Machines& m_;
  io::FileSystem& fs_;
};

}  // namespace

Status check_places(Machines& machines) { return Places(machines).all(); }

}  // namespace ostro::cluster_check
