#include "ostro/page/numbers/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
