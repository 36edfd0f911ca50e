#include "ostro/train/step/step_profile.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "ostro/base/log.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/train/step/trace_file.h"

namespace ostro::train {
namespace {

std::optional<int64_t> number(std::string_view text) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 0) return std::nullopt;
  return n;
}

}  // namespace

Result<StepRange> parse_profile(const std::string& text) {
  constexpr std::string_view kPrefix = "steps=";
  const std::string_view view = text;
  const size_t colon = view.find(':');
  std::optional<int64_t> begin, end;
  if (view.starts_with(kPrefix) && colon != std::string_view::npos) {
    begin = number(view.substr(kPrefix.size(), colon - kPrefix.size()));
    end = number(view.substr(colon + 1));
  }
  if (!begin || !end)
    return invalid_argument(
        fmt::format("--profile {}: give the steps as steps=FIRST:END, two numbers; steps=10:13 profiles the "
                    "steps 10, 11 and 12",
                    text));
  if (*end <= *begin)
    return invalid_argument(
        fmt::format("--profile {}: no step is from {} on and before {}; END is the first step that is not "
                    "profiled any more, steps={}:{} one step",
                    text, *begin, *end, *begin, *begin + 1));
  return StepRange{*begin, *end};
}

Status check_profile(const StepRange& range, int64_t steps) {
  if (range.end <= steps) return Status();
  return invalid_argument(
      fmt::format("--profile steps={}:{}: trainer.num_train_steps is {}, so the last step is {} and END at "
                  "most {}",
                  range.begin, range.end, steps, steps - 1, steps));
}

StepProfile::StepProfile(io::FileSystem& fs, std::string directory, std::optional<StepRange> range)
    : fs_(fs), directory_(std::move(directory)), range_(range) {}

StepProfile::~StepProfile() {
  if (on_) write();
}

void StepProfile::reach(int64_t step) {
  if (!range_) return;
  if (step >= range_->end) {
    if (on_) return write();
    log_warning(fmt::format("no profile: steps {} to {} were done before", range_->begin, range_->end - 1));
    range_.reset();
    return;
  }
  if (on_ || step < range_->begin) return;
  on_ = start_profile();
  if (on_) return;
  log_warning("no profile: another run of this process is being profiled");
  range_.reset();
}

std::string StepProfile::span_name(int64_t step) const {
  return on_ ? fmt::format("ProfilerStep#{}", step) : "";
}

void StepProfile::write() {
  on_ = false;
  const std::string path = fmt::format("{}/profile-{}-{}.json", directory_, range_->begin, range_->end);
  const std::vector<ProfileTrack> tracks = stop_profile();
  range_.reset();
  const Status written = io::write_file_atomically(fs_, path, trace_json(tracks));
  if (written.ok())
    log_info(fmt::format("profile: {} (open it in https://ui.perfetto.dev)", path));
  else
    log_warning(fmt::format("the profile is lost: {}", written.error().message()));
}

}  // namespace ostro::train
