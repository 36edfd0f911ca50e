// QueryUnit, query_units: the query rows of a job of the backward pass of attention on integers
// (docs/spec/numerics.md, N21), cut into what shares scales in dk and dv and packed for the products.
//
// Functions use only their arguments. Callers set N0's floating-point environment.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/base/aligned.h"
#include "ostro/kernels/attention/attention.h"
#include "ostro/kernels/attention/kernels/attention_kernels.h"
#include "ostro/kernels/attention/slices/slice_panels.h"

namespace ostro::kernels {

// Neighbouring rows of one head, in one leaf and one block of 128 positions. q and do are right operands of
// products over head_dim, and over the rows.
struct QueryUnit {
  int64_t leaf, g, first, count;
  AlignedBytes q, d_o;                     // over head_dim, panels of rows
  AlignedBytes q_columns, do_columns;      // over rows, panels of head_dim; only for dk and dv
  std::vector<float> q_scales, do_scales;  // [kSliceBlock], +0 behind `count`
  AlignedBytes dq;  // [panel of rows][head_dim in whole panels][rows], zeros; only for dq
};

struct QueryUnits {
  int64_t leaves = 1;
  std::vector<QueryUnit> units;  // by leaf, then head, then row, all ascending
};

// `over_dim` and `over_rows`: operands of products over head_dim, and over kSliceBlock rows.
QueryUnits query_units(const AttentionBackward& args, const BackwardJob& job, const SliceKernels& kernels,
                       const SliceOperands& over_dim, const SliceOperands& over_rows);

}  // namespace ostro::kernels
