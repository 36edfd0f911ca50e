#include "ostro/serve/follow.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/io/files/path.h"

namespace ostro::serve {
namespace {

// Names of checkpoints have a fixed number of digits, so the last one in order is the newest.
Result<std::string> newest_in(io::FileSystem& fs, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto entries, fs.list(folder));
  std::string out;
  for (const io::DirEntry& entry : entries)
    if (entry.is_directory && entry.name.starts_with("step-")) out = entry.name;
  return out;
}

}  // namespace

Result<Follower> Follower::create(io::FileSystem& fs, const std::string& run, const std::string& state,
                                  ModelServer& server, Load load) {
  Follower out(fs, io::join_path(run, "checkpoints"), state, server, std::move(load));
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
  const auto failed = [&](const Error& error) {
    again_ = now + kPause;
    if (error.message() != trouble_)
      log_warning(fmt::format("--follow: {} is not served yet: {}", *newest, error.message()));
    trouble_ = error.message();
  };
  auto model = load_();
  if (!model.ok()) return failed(model.error());
  const std::string state = (*model)->facts.state;
  if (state != state_) {
    if (const Status replaced = server_->replace(std::move(*model)); !replaced.ok())
      return failed(replaced.error());
    log_info(fmt::format("{} is served from now on, state {}", *newest, state));
    state_ = state;
  }
  newest_ = *newest;
}

}  // namespace ostro::serve
