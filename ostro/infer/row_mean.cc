#include "ostro/infer/row_mean.h"

#include "ostro/base/check.h"
#include "ostro/numerics/fp_env.h"

namespace ostro::infer {
namespace {

[[gnu::noinline]] void add_row(std::span<const float> row, std::span<double> sums) {
  for (size_t i = 0; i < row.size(); ++i) sums[i] += static_cast<double>(row[i]);
}

[[gnu::noinline]] float quotient(double sum, double count) { return static_cast<float>(sum / count); }

}  // namespace

void RowMean::add(std::span<const float> rows, size_t width) {
  OSTRO_CHECK(width > 0 && rows.size() % width == 0, "{} values are no rows of {}", rows.size(), width);
  const numerics::HostArithmetic guard;
  sums_.resize(width);
  for (; !rows.empty(); rows = rows.subspan(width), ++count_) add_row(rows.first(width), sums_);
}

std::vector<float> RowMean::mean() const {
  OSTRO_CHECK(count_ > 0, "a mean of no row");
  const numerics::HostArithmetic guard;
  std::vector<float> out;
  for (const double sum : sums_) out.push_back(quotient(sum, static_cast<double>(count_)));
  return out;
}

}  // namespace ostro::infer
