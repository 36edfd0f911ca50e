#include "ostro/cpu/routines/fingerprint_sum.h"

#include <cstring>

namespace ostro::cpu {
namespace {

constexpr kernels::FingerprintLane lane(const numerics::FingerprintConstants& c) {
  return {c.index_factor, c.factor1, c.factor2};
}
constexpr kernels::FingerprintLane kLanes[2] = {lane(numerics::kFingerprintLanes[0]),
                                                lane(numerics::kFingerprintLanes[1])};
// Prefetch distance in bytes: enough for the latency of memory.
constexpr int64_t kAhead = 4096;

}  // namespace

Result<FingerprintSum> FingerprintSum::make(std::span<const Array> in, const ir::Attrs& attrs,
                                            machine::Isa isa) {
  const Array& x = in[0];
  FingerprintSum f;
  f.data_ = x.data;
  f.bytes_ = ir::dtype_size(x.dtype());
  f.per_word_ = numerics::fingerprint_per_word(f.bytes_);
  f.add_words_ = isa >= machine::Isa::kAvx512 ? kernels::fingerprint_words_avx512
                 : isa == machine::Isa::kAvx2 ? kernels::fingerprint_words_avx2
                                              : kernels::fingerprint_words_generic;
  f.globals_ = attrs.ints("global_sizes");
  for (const ir::Axis& a : x.shape().axes) f.sizes_.push_back(a.size);
  for (size_t i = 0; i < f.sizes_.size(); ++i) f.origins_.push_back(integer_of(in[1 + i]));
  int64_t first = 0, whole_length = 1;
  if (!f.sizes_.empty()) {
    f.length_ = f.sizes_.back();
    whole_length = f.globals_.back();
    first = f.origins_.back();
    f.sizes_.pop_back();
    f.globals_.pop_back();
    f.origins_.pop_back();
  }
  if (first % f.per_word_ != 0 ||
      ((first + f.length_) % f.per_word_ != 0 && first + f.length_ != whole_length))
    return invalid_argument(fmt::format(
        "fingerprint: {} is cut at {} .. {} of {}; cells of the last axis must be multiples of {}",
        x.shape().str(), first, first + f.length_, whole_length, f.per_word_));
  f.rows_ = f.length_ == 0 ? 0 : x.count() / f.length_;
  f.first_word_ = static_cast<uint64_t>(first / f.per_word_);
  f.words_ = static_cast<uint64_t>(numerics::fingerprint_words_per_row(whole_length, f.bytes_));
  // Whole rows of whole words lie behind each other, as far as no axis but the first is cut.
  while (!f.sizes_.empty() && f.length_ == whole_length && whole_length % f.per_word_ == 0) {
    f.first_word_ = static_cast<uint64_t>(f.origins_.back()) * f.words_;
    f.words_ *= static_cast<uint64_t>(f.globals_.back());
    whole_length *= f.globals_.back();
    f.length_ *= f.sizes_.back();
    f.rows_ = f.sizes_.back() == 0 ? 0 : f.rows_ / f.sizes_.back();
    f.sizes_.pop_back();
    f.globals_.pop_back();
    f.origins_.pop_back();
  }
  return f;
}

void FingerprintSum::add(numerics::Fingerprint& sum, int64_t row, int64_t start, int64_t n,
                         const char* ahead) const {
  int64_t whole_row = 0, rest = row, stride = 1;
  for (size_t k = sizes_.size(); k-- > 0;) {
    whole_row += (rest % sizes_[k] + origins_[k]) * stride;
    rest /= sizes_[k];
    stride *= globals_[k];
  }
  const char* data = data_ + (row * length_ + start) * bytes_;
  const uint64_t index =
      static_cast<uint64_t>(whole_row) * words_ + first_word_ + static_cast<uint64_t>(start / per_word_);
  const int64_t words = n * bytes_ / 8, rest_bytes = n * bytes_ % 8;
  add_words_(kLanes, index, data, words, sum.lane, ahead == nullptr ? data + kAhead : ahead);
  if (rest_bytes == 0) return;
  uint64_t word = 0;
  std::memcpy(&word, data + 8 * words, static_cast<size_t>(rest_bytes));
  sum.add_word(index + static_cast<uint64_t>(words), word);
}

}  // namespace ostro::cpu
