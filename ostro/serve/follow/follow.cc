#include "ostro/serve/follow/follow.h"

#include <fmt/format.h>

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

Result<Follower> Follower::create(io::FileSystem& fs, const std::string& run, std::string state,
                                  ServeNewest serve_newest) {
  Follower out(fs, io::join_path(run, "checkpoints"), std::move(state), std::move(serve_newest));
  const auto newest = newest_in(fs, out.folder_);
  if (!newest.ok())
    return invalid_argument(
        fmt::format("--follow: {} is no run that has checkpoints: {}", run, newest.error().message()));
  return out;
}

void Follower::look() {
  constexpr std::chrono::seconds kPause{5};  // after a checkpoint that could not be loaded
  const auto now = std::chrono::steady_clock::now();
  if (now < again_) return;
  const auto newest = newest_in(*fs_, folder_);
  if (!newest.ok() || *newest == newest_) return;
  const auto state = serve_newest_(state_);
  if (!state.ok()) {
    again_ = now + kPause;
    if (state.error().message() != trouble_)
      log_warning(fmt::format("--follow: {} is not served yet: {}", *newest, state.error().message()));
    trouble_ = state.error().message();
    return;
  }
  if (*state != state_) log_info(fmt::format("{} is served from now on, state {}", *newest, *state));
  state_ = *state;
  newest_ = *newest;
}

}  // namespace ostro::serve
