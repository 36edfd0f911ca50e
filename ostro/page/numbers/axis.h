// Range, ticks: the numbers at an axis.
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

// The range of means and of the bands around them, [least, most] of each point. Bands count without their
// outermost hundredth on either side, so that a single spike does not flatten everything else.
Range range_with_bands(std::vector<double> means, std::vector<double> leasts, std::vector<double> mosts);

// The range of `values` with a little room; around a single value one that holds it. [0, 1] when there are
// none.
Range range_of(const std::vector<double>& values);

// Round numbers within the range, at most `most` of them (1, 2 or 5 times a power of ten apart).
std::vector<double> ticks(const Range& range, int most);
// As ticks(), but whole numbers alone, for steps.
std::vector<double> whole_ticks(const Range& range, int most);

// The numbers with as many digits as tell neighbours apart: "0.002", "3.5", "12k".
std::vector<std::string> tick_texts(const std::vector<double>& ticks);

// How the values of a chart are written.
enum class Format { kPlain, kBytes, kPercent };  // kBytes: "140 MB"; kPercent: 0.38 as "38 %"
// tick_texts() in a format.
std::vector<std::string> tick_texts(const std::vector<double>& ticks, Format format);

// A number with four digits that count: 3.932, 0.0006, 13.4k, 1.25M.
std::string short_number(double value);
// 1234567 as "1,234,567".
std::string grouped(int64_t number);

}  // namespace ostro::page
