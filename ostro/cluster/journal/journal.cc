#include "ostro/cluster/journal/journal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

#include "ostro/io/files/atomic_file.h"
#include "ostro/objects/s3/routing_file_system.h"

namespace ostro::cluster {
namespace {

constexpr std::string_view kStart = "ostro cluster journal 1, last epoch ";
constexpr int64_t kMostJournalBytes = 100;

}  // namespace

Result<Journal> Journal::open(const std::string& path) {
  Journal journal;
  journal.path_ = path;
  if (path.empty()) return journal;
  io::FileSystem& files = objects::default_file_system();
  ASSIGN_OR_RETURN(journal.lock_, files.lock(path + ".lock", fmt::format("a coordinator, pid {}", getpid())));
  ASSIGN_OR_RETURN(const bool there, files.exists(path));
  if (!there) return journal;
  ASSIGN_OR_RETURN(const std::string text, files.read_file(path, kMostJournalBytes));
  const char* const end = text.data() + text.size();
  bool good = text.starts_with(kStart);
  if (good) {
    const auto [rest, failed] = std::from_chars(text.data() + kStart.size(), end, journal.last_epoch_);
    good = failed == std::errc() && std::string_view(rest, end) == "\n" && journal.last_epoch_ >= 0;
  }
  if (!good)
    return corrupt(
        fmt::format("{} is not a journal of a coordinator; name another file, or remove it", path));
  return journal;
}

Status Journal::record(int64_t epoch) {
  last_epoch_ = epoch;
  if (path_.empty()) return {};
  return io::write_file_atomically(objects::default_file_system(), path_,
                                   fmt::format("{}{}\n", kStart, epoch));
}

}  // namespace ostro::cluster
