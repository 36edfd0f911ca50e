#include <algorithm>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/kernels/attention/kernels/attention_tile.inc.h"
#include "ostro/kernels/attention/slices/slice_panels.h"
#include "ostro/kernels/attention/slices/sliced_attention.h"
#include "ostro/machine/vector/vec_generic.h"
#include "ostro/products/int8_admission.h"
#include "ostro/products/kernels/dot8_kernel.h"

namespace ostro::kernels {
namespace {

using Lanes = machine::VecGeneric;

// The keys and values of one example, packed: of each head and block of keys first k, as the left operand of
// scores, then v, as that of the output.
class PackedKeys {
 public:
  PackedKeys(const AttentionForward& a, const SliceKernels& kernels, const DotInt8Kernel& product)
      : a_(a),
        kernels_(kernels),
        scores(product, a.shape.head_dim),
        sums(product, kSliceBlock),
        blocks((a.shape.key_pos + kSliceBlock - 1) / kSliceBlock),
        k_bytes_(scores.bytes(Side::kLeft, kSliceBlock)),
        v_bytes_(sums.bytes(Side::kLeft, a.shape.head_dim)),
        memory_(allocate_aligned(static_cast<size_t>(a.shape.kv_heads * blocks * (k_bytes_ + v_bytes_)))),
        v_scales_(static_cast<size_t>(a.shape.kv_heads * blocks * kSliceBlock)),
        ones_(static_cast<size_t>(a.shape.head_dim), 1.0f) {}

  // Item: (kv head, block).
  void pack(int64_t b, int64_t item) {
    const AttentionShape& s = a_.shape;
    const int64_t h = item / blocks, first = item % blocks * kSliceBlock;
    const int64_t count = std::min(kSliceBlock, s.key_pos - first);
    const auto place = [&](const KeyStrides& st) {
      return [&st, b, h, first](int64_t j) { return b * st.batch + (first + j) * st.pos + h * st.kv_head; };
    };
    SlicedRows rows(s.head_dim);
    rows.load(kernels_, a_.k, s.type, count, place(a_.k_strides), Side::kLeft);
    scores.pack(Side::kLeft, rows.rows(), rows.scales(), count, k_of(item));
    rows.load(kernels_, a_.v, s.type, count, place(a_.v_strides), Side::kLeft);
    std::copy_n(rows.scales(), kSliceBlock, v_scales_.begin() + item * kSliceBlock);
    sums.pack(Side::kLeft, rows.columns(Side::kLeft), ones_.data(), s.head_dim, v_of(item));
  }
  std::byte* k_of(int64_t item) const { return memory_.get() + item * (k_bytes_ + v_bytes_); }
  std::byte* v_of(int64_t item) const { return k_of(item) + k_bytes_; }
  const float* v_scales(int64_t item) const { return v_scales_.data() + item * kSliceBlock; }

 private:
  const AttentionForward& a_;
  const SliceKernels& kernels_;

 public:
  const SliceOperands scores, sums;
  const int64_t blocks;

 private:
  const int64_t k_bytes_, v_bytes_;
  const AlignedBytes memory_;
  std::vector<float> v_scales_;
  const std::vector<float> ones_;
};

// One item of the forward pass (AttentionKernels::forward): a tile of 64 query rows, in panels of the right
// operand's width. Scores lie as [key][query], sums as [head_dim][query].
class ForwardItem {
 public:
  ForwardItem(const AttentionForward& a, const PackedKeys& keys, const SliceKernels& kernels, int64_t item)
      : a_(a),
        keys_(keys),
        kernels_(kernels),
        tile_(forward_tile<Lanes>(a.shape, item)),
        lanes_(keys.scores.width(Side::kRight)),
        panels_(keys.scores.panels(Side::kRight, tile_.lanes)),
        rows_(keys.scores.width(Side::kLeft)),
        sum_floats_(keys.sums.panels(Side::kLeft, a.shape.head_dim) * rows_ * lanes_),
        q_(allocate_aligned(static_cast<size_t>(keys.scores.bytes(Side::kRight, tile_.lanes)))),
        weights_(allocate_aligned(static_cast<size_t>(keys.sums.panel_bytes(Side::kRight)))),
        s_(allocate_aligned(static_cast<size_t>((kSliceBlock + rows_) * lanes_) * sizeof(float))),
        sums_(allocate_zeroed(static_cast<size_t>(panels_ * sum_floats_) * sizeof(float))) {
    first_maximum<Lanes>(a.shape, tile_, m_, l_);
    SlicedRows rows(a.shape.head_dim);
    rows.load(
        kernels, a.q, a.shape.type, tile_.lanes,
        [&](int64_t i) { return tile_.offset(i, a.shape.group, a.q_strides); }, Side::kRight);
    keys.scores.pack(Side::kRight, rows.rows(), rows.scales(), tile_.lanes, q_.get());
  }

  // Key blocks ascending.
  void run() {
    const AttentionShape& s = a_.shape;
    Range common;
    const Range reach = lane_keys<Lanes>(s, tile_, 0, tile_.lanes, &common);
    for (int64_t block = reach.begin / kSliceBlock; block * kSliceBlock < reach.end; ++block) {
      uint64_t words[kSliceBlock];
      const int64_t first = block * kSliceBlock;
      int64_t count = std::min(reach.end - first, kSliceBlock);
      if (forward_words<Lanes>(tile_, s.group, {first, first + count}, words) == 0) continue;
      while (words[count - 1] == 0) --count;
      for (int64_t panel = 0; panel < panels_; ++panel)
        add_block(panel, tile_.h * keys_.blocks + block, words, count);
    }
    store();
  }

 private:
  float* floats(const AlignedBytes& memory) const { return reinterpret_cast<float*>(memory.get()); }

  void add_block(int64_t panel, int64_t item, const uint64_t* words, int64_t count) {
    uint32_t seen[kSliceBlock];
    float factors[kSliceBlock];
    if (!panel_words(words, panel, lanes_, count, keys_.v_scales(item), seen, factors)) return;
    const AttentionShape& s = a_.shape;
    const SliceOperands &scores = keys_.scores, &sums = keys_.sums;
    float *const p = floats(s_), *const sum = floats(sums_) + panel * sum_floats_;
    const std::byte* left = keys_.k_of(item);
    for (int64_t j = 0; j < count; j += rows_, left += scores.panel_bytes(Side::kLeft))
      scores.multiply(left, q_.get() + panel * scores.panel_bytes(Side::kRight), count - j, p + j * lanes_,
                      false);
    float c[32];
    kernels_.softmax({.s = p,
                      .words = seen,
                      .keys = count,
                      .lanes = static_cast<int>(lanes_),
                      .of = {score_kappa(s), s.scale, s.soft_cap},
                      .m = m_ + panel * lanes_,
                      .l = l_ + panel * lanes_,
                      .c = c});
    for (int64_t d = 0; d < s.head_dim; ++d)
      for (int64_t i = 0; i < lanes_; ++i) sum[d * lanes_ + i] = sum[d * lanes_ + i] * c[i];
    kernels_.lane_weights({.w = p,
                           .factors = factors,
                           .keys = count,
                           .lanes = static_cast<int>(lanes_),
                           .bytes = sums.packs_bytes(),
                           .flip = sums.zero_word(),
                           .out = weights_.get()});
    left = keys_.v_of(item);
    for (int64_t d = 0; d < s.head_dim; d += rows_, left += sums.panel_bytes(Side::kLeft))
      sums.multiply(left, weights_.get(), s.head_dim - d, sum + d * lanes_, true);
  }

  void store() {
    const AttentionShape& s = a_.shape;
    store_statistics<Lanes>(a_, tile_, m_, l_);
    std::vector<float> row(static_cast<size_t>(s.head_dim));
    for (int64_t i = 0; i < tile_.lanes; ++i) {
      const float* sum = floats(sums_) + i / lanes_ * sum_floats_ + i % lanes_;
      for (int64_t d = 0; d < s.head_dim; ++d) row[static_cast<size_t>(d)] = (sum[d * lanes_] + 0.0f) * l_[i];
      store_row<Lanes>(row.data(), s.head_dim, a_.out, tile_.offset(i, s.group, a_.out_strides), a_.out_type);
    }
  }

  const AttentionForward& a_;
  const PackedKeys& keys_;
  const SliceKernels& kernels_;
  const ForwardTile tile_;
  const int64_t lanes_, panels_, rows_, sum_floats_;
  const AlignedBytes q_, weights_, s_, sums_;
  float m_[kQueryTile], l_[kQueryTile];
};

}  // namespace

bool panel_words(const uint64_t* words, int64_t panel, int64_t lanes, int64_t keys, const float* scales,
                 uint32_t* seen, float* factors) {
  const uint64_t all = (uint64_t{1} << lanes) - 1;
  uint32_t any = 0;
  for (int64_t j = 0; j < keys; ++j) {
    seen[j] = static_cast<uint32_t>(words[j] >> (panel * lanes) & all);
    factors[j] = seen[j] != 0 ? scales[j] : 0.0f;
    any |= seen[j];
  }
  return any != 0;
}

float score_kappa(const AttentionShape& s) {
  return s.soft_cap > 0 ? numerics::kLog2e : numerics::attention_kappa(s.scale);
}

// One example after the other, so that only its keys and values are packed at a time.
void sliced_forward(const AttentionForward& args, machine::Isa isa, machine::ThreadPool& pool) {
  const AttentionShape& s = args.shape;
  if (s.batch == 0 || s.pos == 0) return;
  const SliceKernels& kernels = slice_kernels(isa);
  const DotInt8Kernel& product = int8_kernel(isa);
  PackedKeys keys(args, kernels, product);
  const int64_t items = forward_items(s) / s.batch;
  for (int64_t b = 0; b < s.batch; ++b) {
    pool.run_tiles(s.kv_heads * keys.blocks, [&](int64_t item) { keys.pack(b, item); });
    pool.run_tiles(items, [&](int64_t item) {
      if (product.enter != nullptr) product.enter();
      ForwardItem(args, keys, kernels, b * items + item).run();
      if (product.leave != nullptr) product.leave();
    });
  }
}

}  // namespace ostro::kernels
