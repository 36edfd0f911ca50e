#include "ostro/page/numbers/bins.h"

#include <algorithm>
#include <cmath>

namespace ostro::page {
namespace {

void merge(Bin& into, const Bin& other) {
  into.first = std::min(into.first, other.first);
  into.last = std::max(into.last, other.last);
  into.count += other.count;
  into.sum += other.sum;
  into.least = std::min(into.least, other.least);
  into.most = std::max(into.most, other.most);
}

}  // namespace

void Bins::add(int64_t step, double value) {
  if (!std::isfinite(value)) {
    ++not_finite_;
    return;
  }
  if (values_ == 0 || step < first_.step) first_ = {step, value};
  if (values_ == 0 || step >= last_.step) last_ = {step, value};
  if (values_ == 0 || value < least_.value) least_ = {step, value};
  ++values_;
  const Bin one{step, step, 1, value, value, value};
  const int64_t index = index_of(step);
  const auto place = std::partition_point(bins_.begin(), bins_.end(),
                                          [&](const Bin& b) { return index_of(b.first) < index; });
  if (place != bins_.end() && index_of(place->first) == index)
    merge(*place, one);
  else
    bins_.insert(place, one);
  while (bins_.size() > limit_) halve();
}

// Doubles the stretch of steps that shares a bin. Two neighbouring bins become one only if their steps now
// have the same index, so the result does not depend on the order in which values came.
void Bins::halve() {
  width_ *= 2;
  std::vector<Bin> fewer;
  for (const Bin& bin : bins_) {
    if (!fewer.empty() && index_of(fewer.back().first) == index_of(bin.first))
      merge(fewer.back(), bin);
    else
      fewer.push_back(bin);
  }
  bins_ = std::move(fewer);
}

double Bins::sum() const {
  double total = 0;
  for (const Bin& bin : bins_) total += bin.sum;
  return total;
}

}  // namespace ostro::page
