#include "ostro/cli/shared/percent_progress.h"

#include <fmt/core.h>

#include <algorithm>

namespace ostro::cli {

PercentProgressLine::PercentProgressLine(ProgressOutput output)
    : output_(std::move(output)), begin_(output_.now()) {}

void PercentProgressLine::show(const std::string& what, double done) {
  if (!output_.is_due(done >= 1)) return;
  const double seconds = std::chrono::duration<double>(output_.now() - begin_).count();
  const double left = done > 0 ? seconds / std::min(done, 1.0) * std::max(0.0, 1 - done) : 0;
  output_.show(fmt::format("{}: {:5.1f}%  {}:{:02} left", what, 100 * std::min(done, 1.0),
                           static_cast<int64_t>(left) / 60, static_cast<int64_t>(left) % 60));
}

}  // namespace ostro::cli
