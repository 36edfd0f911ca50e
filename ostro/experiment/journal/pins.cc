#include "ostro/experiment/journal/pins.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

// A list of strings; nothing for another value.
bool read_texts(const nlohmann::json& json, std::vector<std::string>& out) {
  if (!json.is_array()) return false;
  for (const auto& item : json) {
    if (!item.is_string()) return false;
    out.push_back(item);
  }
  return true;
}

// The lock of the file, in a hidden file beside it, which no glob of a source finds. It is held for moments.
Result<std::unique_ptr<io::FileLock>> lock_of(io::FileSystem& fs, const std::string& path) {
  const std::string file = io::join_path(io::parent_path(path), "." + io::base_name(path) + ".lock");
  for (int tries = 0;; ++tries) {
    auto lock = fs.lock(file, fmt::format("process {}", ::getpid()));
    if (lock.ok() || lock.error().code() != ErrorCode::kBusy || tries == 500) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

Result<Pins> Pins::read(io::FileSystem& fs, const std::string& path) {
  Pins pins(fs, path);
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists) return pins;
  ASSIGN_OR_RETURN(pins.saved_, fs.read_file(path));
  const auto json = nlohmann::json::parse(pins.saved_, nullptr, false);
  bool good = json.is_object();
  if (good)
    for (const auto& [name, source] : json.items()) {
      Source& s = pins.sources_[name];
      good = good && source.is_object() && source.contains("patterns") &&
             read_texts(source["patterns"], s.patterns) && source.contains("files") &&
             source["files"].is_array();
      if (!good) break;
      for (const auto& file : source["files"]) {
        std::vector<std::string> pair;
        good = good && read_texts(file, pair) && pair.size() == 2;
        if (good) s.files.push_back({pair[1], pair[0]});
      }
    }
  if (!good)
    return corrupt(
        fmt::format("{}: is no list of pinned files; put back a copy, or remove it to pin again", path));
  return pins;
}

Status Pins::pin(const std::string& source, const std::vector<std::string>& patterns,
                 const std::vector<PinnedFile>& files) {
  const auto changed = [&](const std::string& what) {
    return corrupt(fmt::format("{}. Put the files back as they were, or take them as they are now: --pin {}",
                               what, source.substr(source.rfind('/') + 1)));
  };
  if (const auto known = sources_.find(source); known != sources_.end()) {
    const bool same_patterns = known->second.patterns == patterns;
    for (const PinnedFile& pinned : known->second.files) {
      const auto now = std::find_if(files.begin(), files.end(),
                                    [&](const PinnedFile& f) { return f.path == pinned.path; });
      if (now == files.end()) {
        if (same_patterns) return changed(fmt::format("{} is gone; {} pins it", pinned.path, path_));
        continue;
      }
      if (now->sha256 != pinned.sha256)
        return changed(fmt::format("{} has changed: its SHA-256 is {}, {} has {}", pinned.path, now->sha256,
                                   path_, pinned.sha256));
    }
    if (same_patterns)
      for (const PinnedFile& file : files)
        if (std::find(known->second.files.begin(), known->second.files.end(), file) ==
            known->second.files.end())
          return changed(fmt::format("{} is new; {} does not pin it", file.path, path_));
  }
  sources_[source] = {patterns, files};
  touched_.insert(source);
  return {};
}

void Pins::forget(const std::string& source) {
  sources_.erase(source);
  touched_.insert(source);
}

// A line a file, so that a difference can be read.
std::string Pins::text() const {
  const auto quoted = [](const auto& value) {
    return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  std::string out;
  for (const auto& [name, source] : sources_) {
    out += fmt::format("{}{}: {{\"patterns\": {}, \"files\": [", out.empty() ? "" : ",\n", quoted(name),
                       quoted(source.patterns));
    for (const PinnedFile& file : source.files)
      out += fmt::format("{}\n  [{}, {}]", &file == source.files.data() ? "" : ",", quoted(file.sha256),
                         quoted(file.path));
    out += "]}";
  }
  return "{" + out + "}\n";
}

Status Pins::save() {
  if (text() == saved_) return {};
  ASSIGN_OR_RETURN(const auto lock, lock_of(*fs_, path_));
  ASSIGN_OR_RETURN(Pins merged, read(*fs_, path_));
  for (const std::string& source : touched_) {
    const auto mine = sources_.find(source);
    if (mine == sources_.end()) {
      merged.sources_.erase(source);
    } else {
      merged.sources_[source] = mine->second;
    }
  }
  merged.saved_ = merged.text();
  RETURN_IF_ERROR(io::write_file_atomically(*fs_, path_, merged.saved_));
  *this = std::move(merged);
  return {};
}

}  // namespace ostro::lab
