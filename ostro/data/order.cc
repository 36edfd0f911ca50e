#include "ostro/data/order.h"

#include <algorithm>

#include "ostro/base/check.h"
#include "ostro/numerics/permutation.h"

namespace ostro::data {

SequenceOrder::SequenceOrder(uint64_t seed, int64_t n, const config::Alternatives<bool, int64_t>& shuffle)
    : key_(numerics::fold_in(numerics::key_from_seed(seed), "data")), n_(n) {
  OSTRO_CHECK(n >= 1, "an order of {} sequences", n);
  const int64_t* era = std::get_if<int64_t>(&shuffle.value);
  era_ = era != nullptr ? std::min(*era, n) : std::get<bool>(shuffle.value) ? n : 0;
}

int64_t SequenceOrder::operator()(int64_t example) const {
  OSTRO_CHECK(example >= 0, "example {}", example);
  const int64_t epoch = example / n_, position = example % n_;
  if (era_ == 0) return position;
  const int64_t era = position / era_, begin = era * era_;
  numerics::Key key = numerics::fold_in(key_, static_cast<uint32_t>(epoch));
  key = numerics::fold_in(key, static_cast<uint32_t>(era));
  const numerics::Permutation permutation(key, std::min(era_, n_ - begin));
  return begin + permutation(position - begin);
}

}  // namespace ostro::data
