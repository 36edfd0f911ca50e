#include "ostro/run/report/forecast.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "ostro/base/log.h"
#include "ostro/train/step/leaf_progress.h"

namespace ostro::run {
namespace {

constexpr std::chrono::milliseconds kLook{100};
constexpr double kLong = 10;  // seconds of a step without a word

double gigabytes(int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

}  // namespace

std::string span_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.2g} s", seconds);
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  const auto minutes = static_cast<int64_t>(seconds / 60 + 0.5);
  if (minutes < 100) return fmt::format("{} min", minutes);
  if (minutes < 48 * 60) return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
  return fmt::format("{:.1f} days", seconds / 86400);
}

std::string forecast_text(double leaf_seconds, int64_t leaves, int64_t steps, int64_t need, int64_t room) {
  const double step = leaf_seconds * static_cast<double>(leaves), all = step * static_cast<double>(steps);
  std::string text = fmt::format("a leaf takes about {}, a step of {} {} about {}, the {} steps about {}",
                                 span_text(leaf_seconds), leaves, leaves == 1 ? "leaf" : "leaves",
                                 span_text(step), steps, span_text(all));
  constexpr double kCentury = 86400 * 36525.0;
  if (all < kCentury)
    text += fmt::format(", until {:%Y-%m-%d %H:%M}",
                        fmt::localtime(std::time(nullptr) + static_cast<std::time_t>(all)));
  text += fmt::format("; memory: {:.2f} GB", gigabytes(need));
  return room > 0 ? text + fmt::format(" of {:.2f} GB that can be had", gigabytes(room)) : text;
}

Forecast::Forecast(int64_t first, int64_t steps, int64_t need, int64_t room)
    : first_(first), steps_(steps), need_(need), room_(room), thread_([this] { watch(); }) {}

Forecast::~Forecast() { stop(); }

void Forecast::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  say();
}

void Forecast::say() {
  const train::LeafProgress p = train::leaf_progress();
  if (said_ || p.first_seconds == 0 || p.of == 0) return;
  said_ = true;
  log_info(forecast_text(p.first_seconds, p.of, steps_, need_, room_));
}

void Forecast::watch() {
  const auto begin = std::chrono::steady_clock::now();
  double told = 0;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kLook, [this] { return stopped_; })) {
    const double now = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    say();
    if (now - told < kLong) continue;
    told = now;
    const train::LeafProgress p = train::leaf_progress();
    if (p.of == 0 || p.done == p.of)
      log_info(fmt::format("step {}: {} since {}", first_, p.of == 0 ? "getting ready" : "updating",
                           span_text(now)));
    else if (p.done == 0)
      log_info(fmt::format("step {}: in leaf 1 of {}, since {}", first_, p.of, span_text(now)));
    else
      log_info(fmt::format("step {}: leaf {} of {} is done; about {} more", first_, p.done, p.of,
                           span_text(p.first_seconds * static_cast<double>(p.of - p.done))));
  }
}

}  // namespace ostro::run
