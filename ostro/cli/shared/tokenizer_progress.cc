#include "ostro/cli/shared/tokenizer_progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

namespace ostro::cli {

TokenizerProgressLine::TokenizerProgressLine(ProgressOutput output)
    : output_(std::move(output)), begin_(output_.now()) {}

std::function<void(const tokenizer::TrainProgress&)> TokenizerProgressLine::callback() {
  return [this](const tokenizer::TrainProgress& p) { draw(p); };
}

void TokenizerProgressLine::draw(const tokenizer::TrainProgress& p) {
  const bool counting = p.stage == Stage::kCounting;
  const auto done = static_cast<double>(p.done), total = static_cast<double>(p.total);
  if (p.stage != stage_) {
    stage_ = p.stage;
    begin_ = output_.now();
    from_ = done;
  }
  const bool last = !counting && p.done >= p.total;
  if (!output_.is_due(last)) return;
  const double seconds = std::chrono::duration<double>(output_.now() - begin_).count();
  const double rate = (done - from_) / std::max(seconds, 1e-3), left = rate > 0 ? (total - done) / rate : 0;
  const double percent = total > 0 ? 100 * done / total : 100;
  const std::string what =
      counting ? fmt::format("tokenizer, counting pieces: {:5.1f}%  {:.1f} of {:.1f} MB", percent,
                             done * 1e-6, total * 1e-6)
               : fmt::format("tokenizer, merging pairs: {:5.1f}%  {} of {} tokens", percent, p.done, p.total);
  output_.show(fmt::format("{}  {}:{:02} left", what, static_cast<int64_t>(left) / 60,
                           static_cast<int64_t>(left) % 60));
  if (last) output_.end();
}

}  // namespace ostro::cli
