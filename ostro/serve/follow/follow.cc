#include "ostro/serve/follow/follow.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/io/files/path.h"

namespace ostro::serve {
namespace {

// Names of checkpoints have a fixed number of digits, so the last one in order is the newest. One that is
// being written has another ending.
Result<std::string> newest_in(io::FileSystem& fs, const std::string& folder) {
  constexpr std::string_view kStep = "step-";
  ASSIGN_OR_RETURN(const auto entries, fs.list(folder));
  std::string out;
  for (const io::DirEntry& entry : entries)
    if (entry.is_directory && entry.name.starts_with(kStep) &&
        entry.name.find_first_not_of("0123456789", kStep.size()) == std::string::npos)
      out = entry.name;
  return out;
}

}  // namespace

Result<Follower> Follower::create(io::FileSystem& fs, const std::string& run, ServedCheckpoint served,
                                  ServeNewest serve_newest) {
  Follower out(fs, io::join_path(run, "checkpoints"), std::move(served), std::move(serve_newest));
  const auto newest = newest_in(fs, out.folder_);
  if (!newest.ok())
    return invalid_argument(
        fmt::format("--follow: {} is no run that has checkpoints: {}", run, newest.error().message()));
  return out;
}

void Follower::put_off(const std::string& newest, const std::string& why) {
  constexpr std::chrono::seconds kFirst{5}, kMost{300};
  pause_ = pause_ == pause_.zero() ? kFirst : std::min(2 * pause_, kMost);
  again_ = std::chrono::steady_clock::now() + pause_;
  if (why != trouble_) log_warning(fmt::format("--follow: {} is not served yet: {}", newest, why));
  trouble_ = why;
}

bool Follower::look() {
  if (std::chrono::steady_clock::now() < again_) return false;
  const auto newest = newest_in(*fs_, folder_);
  if (!newest.ok() || *newest == served_.folder) return false;
  auto served = serve_newest_(served_);
  if (!served.ok()) {
    put_off(*newest, served.error().message());
    return false;
  }
  const bool is_other = served->state != served_.state;
  if (is_other) log_info(fmt::format("{} is served from now on, state {}", served->folder, served->state));
  served_ = std::move(*served);
  // Where the newest one is damaged, a run's loader may fall back on one before it.
  if (served_.folder != *newest) {
    put_off(*newest, "it cannot be loaded");
    return is_other;
  }
  pause_ = pause_.zero();
  trouble_.clear();
  return is_other;
}

}  // namespace ostro::serve
