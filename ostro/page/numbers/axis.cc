#include "ostro/page/numbers/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace ostro::page {
namespace {

// The largest of 1, 2, 5 times a power of ten that is at least `size`.
double round_up(double size) {
  const double power = std::pow(10.0, std::floor(std::log10(size)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0})
    if (factor * power >= size * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<double> multiples(const Range& range, double step) {
  std::vector<double> out;
  const double slack = 1e-9 * (range.high - range.low);
  for (double i = std::ceil((range.low - slack) / step); i * step <= range.high + slack; ++i)
    out.push_back(i == 0 ? 0.0 : i * step);  // no -0
  return out;
}

// A unit so that numbers of this size are short.
struct Unit {
  double size;
  const char* sign;
};
Unit unit_of(double value) {
  for (const Unit unit : {Unit{1e12, "T"}, Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e4, "k"}})
    if (value >= unit.size) return {unit.size == 1e4 ? 1e3 : unit.size, unit.sign};
  return {1, ""};
}

}  // namespace

Range range_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double spread = *high - *low, size = std::max(std::abs(*high), std::abs(*low));
  // A spread within rounding error counts as a single value.
  if (!(spread > 1e-12 * size)) {
    const double room = size > 0 ? 0.05 * size : 1;
    return {*low - room, *low + room};
  }
  constexpr double kRoom = 0.04;
  Range range{*low - kRoom * spread, *high + kRoom * spread};
  if (*low >= 0) range.low = std::max(range.low, 0.0);  // what is never negative does not look as if it were
  return range;
}

Range range_with_bands(std::vector<double> means, std::vector<double> leasts, std::vector<double> mosts) {
  constexpr size_t kOutermost = 100;
  if (!leasts.empty()) {
    const auto skipped = static_cast<int64_t>(leasts.size() / kOutermost);
    std::nth_element(leasts.begin(), leasts.begin() + skipped, leasts.end());
    std::nth_element(mosts.begin(), mosts.end() - 1 - skipped, mosts.end());
    means.push_back(leasts[static_cast<size_t>(skipped)]);
    means.push_back(*(mosts.end() - 1 - skipped));
  }
  return range_of(means);
}

std::vector<double> ticks(const Range& range, int most) {
  return multiples(range, round_up((range.high - range.low) / most));
}

std::vector<double> whole_ticks(const Range& range, int most) {
  return multiples(range, std::max(1.0, round_up((range.high - range.low) / most)));
}

std::vector<std::string> tick_texts(const std::vector<double>& ticks) {
  std::vector<std::string> out;
  double size = 0;
  for (const double tick : ticks) size = std::max(size, std::abs(tick));
  const double apart = ticks.size() > 1 ? ticks[1] - ticks[0] : size;
  const Unit unit = unit_of(size);
  if (size > 0 && (size < 1e-3 || size >= 1e15)) {
    for (const double tick : ticks) out.push_back(tick == 0 ? "0" : fmt::format("{:.3g}", tick));
    return out;
  }
  int digits = 0;
  for (double rest = apart / unit.size; digits < 9 && std::abs(rest - std::round(rest)) > 1e-6 * rest;
       rest *= 10)
    ++digits;
  for (const double tick : ticks)
    out.push_back(tick == 0 ? "0" : fmt::format("{:.{}f}{}", tick / unit.size, digits, unit.sign));
  return out;
}

std::vector<std::string> tick_texts(const std::vector<double>& ticks, Format format) {
  if (format == Format::kPlain) return tick_texts(ticks);
  if (format == Format::kPercent) {
    std::vector<double> percent;
    for (const double tick : ticks) percent.push_back(100 * tick);
    std::vector<std::string> out = tick_texts(percent);
    for (std::string& text : out) text += " %";
    return out;
  }
  std::vector<std::string> out = tick_texts(ticks);
  for (std::string& text : out) {
    const bool has_sign =
        !text.empty() && std::string_view("kMGT").find(text.back()) != std::string_view::npos;
    if (text != "0") text.insert(text.size() - (has_sign ? 1 : 0), " ") += "B";
  }
  return out;
}

std::string short_number(double value) {
  const Unit unit = unit_of(std::abs(value));
  return fmt::format("{:.4g}{}", value / unit.size, unit.sign);
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t sign = number < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > sign + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

}  // namespace ostro::page
