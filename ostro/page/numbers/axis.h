// Range, ticks: the numbers at an axis of a chart. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace ostro::page {

// A stretch of values; low < high.
struct Range {
  double low = 0, high = 1;
  // The place of a value: 0 at low, 1 at high.
  double place(double value) const { return (value - low) / (high - low); }
};

// The range of means and of the bands around them, which are [least, most] of each point. The outermost
// hundredth of the bands on either side is left out, so that a single spike does not flatten everything else.
Range range_with_bands(std::vector<double> means, std::vector<double> leasts, std::vector<double> mosts);

// The range of `values` with a little room; it is never empty, even for a single value. [0, 1] for no values.
Range range_of(const std::vector<double>& values);

// Round numbers within the range, at most `most` of them (1, 2 or 5 times a power of ten apart).
std::vector<double> ticks(const Range& range, int most);
// As ticks(), but whole numbers alone, for steps.
std::vector<double> whole_ticks(const Range& range, int most);

// The numbers as texts, with enough digits that neighbours differ: "0.002", "3.5", "12k".
std::vector<std::string> tick_texts(const std::vector<double>& ticks);

// The form in which the values of a chart are written.
enum class Format { kPlain, kBytes, kPercent };  // kBytes: "140 MB"; kPercent: 0.38 as "38 %"
// tick_texts() in a format.
std::vector<std::string> tick_texts(const std::vector<double>& ticks, Format format);

// A number with up to four significant digits: 3.932, 0.0006, 13.4k, 1.25M.
std::string short_number(double value);
// 1234567 as "1,234,567".
std::string grouped(int64_t number);

}  // namespace ostro::page
