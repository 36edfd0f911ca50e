#include <algorithm>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/kernels/attention/kernels/attention_backward.inc.h"
#include "ostro/kernels/attention/kernels/attention_tile.inc.h"
#include "ostro/kernels/attention/slices/query_units.h"
#include "ostro/kernels/attention/slices/sliced_attention.h"
#include "ostro/machine/vector/vec_generic.h"
#include "ostro/products/int8_admission.h"
#include "ostro/products/kernels/dot8_kernel.h"

namespace ostro::kernels {
namespace {

using BackwardLanes = machine::VecGeneric;

float* as_floats(const AlignedBytes& memory) { return reinterpret_cast<float*>(memory.get()); }
AlignedBytes room_of(int64_t floats) { return allocate_aligned(static_cast<size_t>(floats) * sizeof(float)); }

// One job of the backward pass. Key blocks are the outer loop, then leaves, heads and blocks of queries, each
// ascending, so that all sums grow in the order of the clause. Scores lie as [key][query].
class SlicedBackward {
 public:
  SlicedBackward(const AttentionBackward& a, const float* delta, const BackwardJob& job, machine::Isa isa)
      : a_(a),
        s_(a.shape),
        delta_(delta),
        job_(job),
        kernels_(slice_kernels(isa)),
        by_dim_(int8_kernel(isa), a.shape.head_dim),
        by_row_(int8_kernel(isa), kSliceBlock),
        mask_(example_mask<BackwardLanes>(a.shape, job.b)),
        lanes_(by_dim_.width(Side::kRight)),
        rows_(by_dim_.width(Side::kLeft)),
        dims_(a.shape.head_dim),
        whole_dims_(by_row_.panels(Side::kLeft, dims_) * rows_),
        tile_floats_(rows_ * lanes_),
        part_floats_(by_dim_.panels(Side::kLeft, kSliceBlock) * by_row_.panels(Side::kRight, dims_) *
                     tile_floats_),
        ones_(static_cast<size_t>(dims_), 1.0f),
        sliced_(dims_),
        k_(allocate_aligned(static_cast<size_t>(by_dim_.bytes(Side::kLeft, kSliceBlock)))),
        v_(allocate_aligned(static_cast<size_t>(by_dim_.bytes(Side::kLeft, kSliceBlock)))),
        k_columns_(allocate_aligned(static_cast<size_t>(by_row_.bytes(Side::kLeft, dims_)))),
        s_room_(room_of((kSliceBlock + rows_) * lanes_)),
        dp_room_(room_of((kSliceBlock + rows_) * lanes_)),
        tanh_room_(room_of(kSliceBlock * lanes_)),
        p_(room_of(kSliceBlock * kSliceBlock)),
        ds_(room_of(kSliceBlock * kSliceBlock)),
        lane_weights_(allocate_aligned(static_cast<size_t>(by_row_.panel_bytes(Side::kRight)))),
        row_weights_(static_cast<size_t>(2 * kSliceBlock * kSliceBlock)),
        row_scales_(static_cast<size_t>(kSliceBlock)),
        packed_weights_(allocate_aligned(static_cast<size_t>(by_row_.bytes(Side::kLeft, kSliceBlock)))) {
    queries_ = query_units(a, job, kernels_, by_dim_, by_row_);
  }

  void run() {
    const int64_t depth = job_.dkv ? leaf_partials(a_) : 0;
    const AlignedBytes partials = room_of(std::max<int64_t>(1, 2 * depth * part_floats_));
    for (int64_t block = job_.keys.begin; block < job_.keys.end; block += kSliceBlock) {
      keys_ = {block, std::min(job_.keys.end, block + kSliceBlock)};
      load_keys();
      add_leaves(as_floats(partials));
      if (job_.dkv) store_keys(as_floats(partials));
    }
    if (job_.dq)
      for (const QueryUnit& unit : queries_.units) store_queries(unit);
  }

 private:
  int64_t row_at(const QueryStrides& st, int64_t g, int64_t row) const {
    return job_.b * st.batch + row * st.pos + job_.h * st.kv_head + g * st.group;
  }
  int64_t key_at(const KeyStrides& st, int64_t key) const {
    return job_.b * st.batch + key * st.pos + job_.h * st.kv_head;
  }

  void load_keys() {
    const int64_t count = keys_.end - keys_.begin;
    sliced_.load(
        kernels_, a_.v, s_.type, count, [&](int64_t j) { return key_at(a_.v_strides, keys_.begin + j); },
        Side::kLeft);
    by_dim_.pack(Side::kLeft, sliced_.rows(), sliced_.scales(), count, v_.get());
    sliced_.load(
        kernels_, a_.k, s_.type, count, [&](int64_t j) { return key_at(a_.k_strides, keys_.begin + j); },
        Side::kLeft);
    by_dim_.pack(Side::kLeft, sliced_.rows(), sliced_.scales(), count, k_.get());
    std::copy_n(sliced_.scales(), kSliceBlock, k_scales_);
    if (job_.dq)
      by_row_.pack(Side::kLeft, sliced_.columns(Side::kLeft), ones_.data(), dims_, k_columns_.get());
  }

  // The sums of all leaves, and their tree: dk and dv are then the first part of `partials`, one after the
  // other.
  void add_leaves(float* partials) {
    auto unit = queries_.units.begin();
    int64_t depth = 0;
    for (int64_t leaf = 0; leaf < queries_.leaves; ++leaf) {
      float* const dk = partials + 2 * depth * part_floats_;
      if (job_.dkv) std::fill_n(dk, 2 * part_floats_, 0.0f);
      ++depth;
      for (; unit != queries_.units.end() && unit->leaf == leaf; ++unit) add_unit(*unit, dk);
      if (job_.dkv)
        merge_leaves<BackwardLanes>(partials, 2 * part_floats_, leaf, leaf + 1 == queries_.leaves, &depth);
    }
  }

  void add_unit(QueryUnit& unit, float* dk) {
    const Range reach = reachable_keys<BackwardLanes>(mask_, mask_.origin + unit.first,
                                                      mask_.origin + unit.first + unit.count - 1);
    if (reach.begin >= keys_.end || reach.end <= keys_.begin) return;
    uint64_t made = 0;  // panels of queries whose p and ds there are
    bool any = false;
    for (int64_t first = 0; first < unit.count; first += kQueryTile) {
      const ForwardTile tile = tile_of(unit, first);
      uint64_t words[kSliceBlock];
      if (forward_words<BackwardLanes>(tile, 1, keys_, words) == 0) continue;
      any = true;
      for (int64_t panel = 0; panel * lanes_ < tile.lanes; ++panel)
        if (add_panel(unit, first / lanes_ + panel, words, panel))
          made |= uint64_t{1} << (first / lanes_ + panel);
    }
    if (!any || !job_.dkv) return;
    for (int64_t panel = 0; panel * lanes_ < kSliceBlock; ++panel)
      if ((made >> panel & 1) == 0) clear_panel(panel * lanes_);
    add_weights(as_floats(p_), unit.do_scales, unit.do_columns, dk + part_floats_);
    add_weights(as_floats(ds_), unit.q_scales, unit.q_columns, dk);
  }

  // Up to 64 rows of a unit as a tile of one head.
  ForwardTile tile_of(const QueryUnit& unit, int64_t first) const {
    ForwardTile t;
    t.b = job_.b;
    t.h = job_.h;
    t.first = unit.first + first;
    t.lanes = static_cast<int>(std::min<int64_t>(kQueryTile, unit.count - first));
    t.mask = mask_;
    t.one_segment = true;
    for (int i = 0; i < kQueryTile; ++i) {
      const int64_t row = t.first + std::min(i, t.lanes - 1);
      t.segments[i] = mask_.query_segments != nullptr ? mask_.query_segments[row] : 0;
      t.one_segment = t.one_segment && t.segments[i] == t.segments[0];
    }
    return t;
  }

  // Sets p and ds of a panel of queries that see no key of the block.
  void clear_panel(int64_t lane) {
    for (int64_t j = 0; j < keys_.end - keys_.begin; ++j) {
      std::fill_n(as_floats(p_) + j * kSliceBlock + lane, lanes_, 0.0f);
      std::fill_n(as_floats(ds_) + j * kSliceBlock + lane, lanes_, 0.0f);
    }
  }

  // p and ds of one panel of a unit; adds to dq. `of_tile`: the panel's number in the tile of `words`.
  // Returns false when the panel sees no key.
  bool add_panel(QueryUnit& unit, int64_t panel, const uint64_t* words, int64_t of_tile) {
    uint32_t seen[kSliceBlock];
    float factors[kSliceBlock];
    const int64_t count = keys_.end - keys_.begin, lane = panel * lanes_;
    if (!panel_words(words, of_tile, lanes_, count, k_scales_, seen, factors)) return false;
    float *const s = as_floats(s_room_), *const dp = as_floats(dp_room_);
    const int64_t right = panel * by_dim_.panel_bytes(Side::kRight);
    for (int64_t j = 0; j < count; j += rows_) {
      const int64_t left = j / rows_ * by_dim_.panel_bytes(Side::kLeft);
      by_dim_.multiply(k_.get() + left, unit.q.get() + right, count - j, s + j * lanes_, false);
      by_dim_.multiply(v_.get() + left, unit.d_o.get() + right, count - j, dp + j * lanes_, false);
    }
    float m[32] = {}, r[32] = {}, delta[32] = {};
    for (int64_t i = 0; i < std::min(lanes_, unit.count - lane); ++i) {
      const int64_t row = unit.first + lane + i;
      const int64_t saved = ((job_.b * s_.pos + row) * s_.kv_heads + job_.h) * s_.group + unit.g;
      m[i] = a_.m[saved];
      r[i] = a_.r[saved];
      delta[i] = delta_[saved];
    }
    kernels_.gradients({.s = s,
                        .dp = dp,
                        .words = seen,
                        .keys = count,
                        .lanes = static_cast<int>(lanes_),
                        .of = {score_kappa(s_), s_.scale, s_.soft_cap},
                        .m = m,
                        .r = r,
                        .delta = delta,
                        .room = as_floats(tanh_room_),
                        .p = as_floats(p_) + lane,
                        .ds = as_floats(ds_) + lane});
    if (!job_.dq) return true;
    kernels_.lane_weights({.w = dp,
                           .factors = factors,
                           .keys = count,
                           .lanes = static_cast<int>(lanes_),
                           .bytes = by_row_.packs_bytes(),
                           .flip = by_row_.zero_word(),
                           .out = lane_weights_.get()});
    float* dq = as_floats(unit.dq) + panel * whole_dims_ * lanes_;
    for (int64_t d = 0; d < dims_; d += rows_)
      by_row_.multiply(k_columns_.get() + d / rows_ * by_row_.panel_bytes(Side::kLeft), lane_weights_.get(),
                       dims_ - d, dq + d * lanes_, true);
    return true;
  }

  // Adds one block of dk or dv: sums over the queries of a unit. `weights` [key][query] are p or ds.
  void add_weights(const float* weights, const std::vector<float>& factors, const AlignedBytes& columns,
                   float* sum) {
    const int64_t count = keys_.end - keys_.begin;
    kernels_.row_weights({.w = weights,
                          .factors = factors.data(),
                          .rows = count,
                          .q = row_weights_.data(),
                          .scales = row_scales_.data()});
    by_row_.pack(Side::kLeft, row_weights_.data(), row_scales_.data(), count, packed_weights_.get());
    const int64_t panels = by_row_.panels(Side::kRight, dims_);
    for (int64_t j = 0; j < count; j += rows_)
      for (int64_t panel = 0; panel < panels; ++panel, sum += tile_floats_)
        by_row_.multiply(packed_weights_.get() + j / rows_ * by_row_.panel_bytes(Side::kLeft),
                         columns.get() + panel * by_row_.panel_bytes(Side::kRight), count - j, sum, true);
  }

  void store_keys(const float* dk) const {
    const int64_t panels = by_row_.panels(Side::kRight, dims_);
    const float key_scale = a_.partial ? 1.0f : s_.scale;
    std::vector<float> k(static_cast<size_t>(dims_)), v(k.size());
    for (int64_t j = 0; j < keys_.end - keys_.begin; ++j) {
      for (int64_t panel = 0; panel < panels; ++panel) {
        const float* at = dk + (j / rows_ * panels + panel) * tile_floats_ + j % rows_ * lanes_;
        const int64_t first = panel * lanes_, count = std::min(lanes_, dims_ - first);
        for (int64_t d = 0; d < count; ++d) {
          k[static_cast<size_t>(first + d)] = at[d] * key_scale + 0.0f;
          v[static_cast<size_t>(first + d)] = at[part_floats_ + d] + 0.0f;
        }
      }
      store_row<BackwardLanes>(k.data(), dims_, a_.dk, key_at(a_.dk_strides, keys_.begin + j), a_.grad_type);
      store_row<BackwardLanes>(v.data(), dims_, a_.dv, key_at(a_.dv_strides, keys_.begin + j), a_.grad_type);
    }
  }

  void store_queries(const QueryUnit& unit) const {
    std::vector<float> row(static_cast<size_t>(dims_));
    for (int64_t i = 0; i < unit.count; ++i) {
      const float* dq = as_floats(unit.dq) + i / lanes_ * whole_dims_ * lanes_ + i % lanes_;
      for (int64_t d = 0; d < dims_; ++d) row[static_cast<size_t>(d)] = dq[d * lanes_] * s_.scale + 0.0f;
      store_row<BackwardLanes>(row.data(), dims_, a_.dq, row_at(a_.dq_strides, unit.g, unit.first + i),
                               a_.grad_type);
    }
  }

  const AttentionBackward& a_;
  const AttentionShape& s_;
  const float* delta_;
  const BackwardJob job_;
  const SliceKernels& kernels_;
  const SliceOperands by_dim_, by_row_;  // products over head_dim, and over keys or queries
  const ExampleMask mask_;
  const int64_t lanes_, rows_, dims_, whole_dims_, tile_floats_, part_floats_;
  const std::vector<float> ones_;
  SlicedRows sliced_;
  QueryUnits queries_;
  Range keys_{0, 0};
  float k_scales_[kSliceBlock];
  const AlignedBytes k_, v_, k_columns_, s_room_, dp_room_, tanh_room_, p_, ds_, lane_weights_;
  std::vector<int8_t> row_weights_;
  std::vector<float> row_scales_;
  const AlignedBytes packed_weights_;
};

}  // namespace

void sliced_backward_job(const AttentionBackward& args, const float* delta, const BackwardJob& job,
                         machine::Isa isa) {
  const DotInt8Kernel& product = int8_kernel(isa);
  if (product.enter != nullptr) product.enter();
  SlicedBackward(args, delta, job, isa).run();
  if (product.leave != nullptr) product.leave();
}

}  // namespace ostro::kernels
