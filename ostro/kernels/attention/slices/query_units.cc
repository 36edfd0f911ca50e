#include "ostro/kernels/attention/slices/query_units.h"

#include <algorithm>

namespace ostro::kernels {
namespace {

class UnitMaker {
 public:
  UnitMaker(const AttentionBackward& a, const BackwardJob& job, const SliceKernels& kernels,
            const SliceOperands& over_dim, const SliceOperands& over_rows)
      : a_(a),
        job_(job),
        kernels_(kernels),
        over_dim_(over_dim),
        over_rows_(over_rows),
        ones_(static_cast<size_t>(a.shape.head_dim), 1.0f),
        sliced_(a.shape.head_dim) {}

  QueryUnit unit(int64_t leaf, int64_t g, int64_t first, int64_t count) {
    QueryUnit u{leaf, g, first, count, {}, {}, {}, {}, {}, {}, {}};
    load(a_.q, a_.q_strides, u, u.q, u.q_columns, u.q_scales);
    load(a_.dout, a_.dout_strides, u, u.d_o, u.do_columns, u.do_scales);
    const int64_t dims = over_rows_.panels(Side::kLeft, a_.shape.head_dim) * over_rows_.width(Side::kLeft);
    const int64_t rows = over_dim_.panels(Side::kRight, count) * over_dim_.width(Side::kRight);
    if (job_.dq) u.dq = allocate_zeroed(static_cast<size_t>(rows * dims) * sizeof(float));
    return u;
  }

 private:
  void load(const void* source, const QueryStrides& st, const QueryUnit& u, AlignedBytes& by_dim,
            AlignedBytes& by_row, std::vector<float>& scales) {
    const AttentionShape& s = a_.shape;
    const int64_t begin = job_.b * st.batch + u.first * st.pos + job_.h * st.kv_head + u.g * st.group;
    sliced_.load(
        kernels_, source, s.type, u.count, [&](int64_t i) { return begin + i * st.pos; }, Side::kRight);
    by_dim = allocate_aligned(static_cast<size_t>(over_dim_.bytes(Side::kRight, u.count)));
    over_dim_.pack(Side::kRight, sliced_.rows(), sliced_.scales(), u.count, by_dim.get());
    scales.assign(sliced_.scales(), sliced_.scales() + kSliceBlock);
    if (!job_.dkv) return;
    by_row = allocate_aligned(static_cast<size_t>(over_rows_.bytes(Side::kRight, s.head_dim)));
    over_rows_.pack(Side::kRight, sliced_.columns(Side::kRight), ones_.data(), s.head_dim, by_row.get());
  }

  const AttentionBackward& a_;
  const BackwardJob& job_;
  const SliceKernels& kernels_;
  const SliceOperands &over_dim_, &over_rows_;
  const std::vector<float> ones_;
  SlicedRows sliced_;
};

}  // namespace

QueryUnits query_units(const AttentionBackward& args, const BackwardJob& job, const SliceKernels& kernels,
                       const SliceOperands& over_dim, const SliceOperands& over_rows) {
  UnitMaker maker(args, job, kernels, over_dim, over_rows);
  const int64_t origin = args.shape.query_origin != nullptr ? args.shape.query_origin[job.b] : 0;
  const bool one_leaf = args.query_leaf_ends.empty() || !job.dkv;
  QueryUnits out;
  if (!one_leaf) out.leaves = static_cast<int64_t>(args.query_leaf_ends.size());
  for (int64_t leaf = 0; leaf < out.leaves; ++leaf) {
    Range rows = job.rows;
    if (!one_leaf) {
      if (leaf > 0) rows.begin = args.query_leaf_ends[static_cast<size_t>(leaf - 1)];
      rows.end = args.query_leaf_ends[static_cast<size_t>(leaf)];
    }
    for (int64_t g = 0; g < args.shape.group; ++g)
      for (int64_t first = rows.begin; first < rows.end;) {
        const int64_t place = ((origin + first) % kSliceBlock + kSliceBlock) % kSliceBlock;
        const int64_t end = std::min(rows.end, first + kSliceBlock - place);
        out.units.push_back(maker.unit(leaf, g, first, end - first));
        first = end;
      }
  }
  return out;
}

}  // namespace ostro::kernels
