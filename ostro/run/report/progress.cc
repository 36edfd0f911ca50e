#include "ostro/run/report/progress.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "ostro/base/log.h"
#include "ostro/chain/clock_text.h"

namespace ostro::run {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kTerminalInterval = std::chrono::milliseconds(100),
                      kPlainInterval = std::chrono::seconds(5);
constexpr double kWindowSeconds = 30;

double seconds(nanoseconds time) { return std::chrono::duration<double>(time).count(); }

// "950", "12.3k", "4.56M".
std::string short_number(double value) {
  if (value < 1e3) return fmt::format("{:.0f}", value);
  if (value < 1e6) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.2f}M", value / 1e6);
}

}  // namespace

double without_nan_sign(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

Progress::Clock Progress::steady_clock() {
  return [] { return nanoseconds(std::chrono::steady_clock::now().time_since_epoch()); };
}

Progress::Progress(Console& console, int64_t first_step, int64_t total_steps, Clock clock)
    : console_(console), total_steps_(total_steps), clock_(std::move(clock)), step_(first_step) {}

Progress::~Progress() {
  if (drawn_) console_.status("");
}

double Progress::steps_per_second() const {
  return window_seconds_ > 0 ? window_steps_ / window_seconds_ : 0;
}
double Progress::tokens_per_second() const {
  return window_seconds_ > 0 ? window_tokens_ / window_seconds_ : 0;
}

void Progress::update(int64_t step, int64_t tokens, const std::function<ProgressNumbers()>& numbers) {
  const nanoseconds now = clock_();
  if (has_time_) {
    const double elapsed = seconds(now - last_update_), keep = std::exp(-elapsed / kWindowSeconds);
    window_steps_ = window_steps_ * keep + static_cast<double>(step - step_);
    window_tokens_ = window_tokens_ * keep + static_cast<double>(tokens);
    window_seconds_ = window_seconds_ * keep + elapsed;
  }
  has_time_ = true;
  last_update_ = now;
  step_ = step;
  const nanoseconds interval = console_.is_terminal() ? kTerminalInterval : kPlainInterval;
  const bool last = step_ >= total_steps_;
  if (drawn_ && now - last_draw_ < interval && !last) return;
  drawn_ = true;
  last_draw_ = now;
  const std::string text = line(numbers());
  if (last || !console_.is_terminal()) {
    console_.status("");
    log_info(text);
  } else {
    console_.status(text);
  }
}

std::string Progress::line(const ProgressNumbers& numbers) const {
  const double share =
      total_steps_ > 0 ? 100.0 * static_cast<double>(step_) / static_cast<double>(total_steps_) : 100;
  std::string out = fmt::format("step {}/{} {:.1f}%  loss {:.4f}", step_, total_steps_, share,
                                without_nan_sign(numbers.loss));
  if (window_seconds_ > 0) {
    out += fmt::format("  {} tokens/s  ETA {}", short_number(tokens_per_second()),
                       chain::duration_text(static_cast<double>(total_steps_ - step_) / steps_per_second()));
  }
  if (numbers.mfu > 0) out += fmt::format("  MFU {:.1f}%", 100 * numbers.mfu);
  if (numbers.resident_bytes > 0)
    out += fmt::format("  {:.2f} GB", static_cast<double>(numbers.resident_bytes) * 1e-9);
  if (numbers.goodput > 0) out += fmt::format("  goodput {:.0f}%", 100 * numbers.goodput);
  return out;
}

}  // namespace ostro::run
