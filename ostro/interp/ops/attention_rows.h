// AttentionRows: the part that attention and its gradient share (numerics.md N9, N21): the places of rows,
// the keys that each row attends to, and its scores.
//
// A row is one query of one head of one example: a point of q's axes without head_dim.
#pragma once

#include <vector>

#include "ostro/interp/core/call.h"
#include "ostro/numerics/dots.h"
#include "ostro/numerics/int8_slices.h"

namespace ostro::interp {

inline constexpr int64_t kKeyBlock = 128;
inline constexpr float kStartMax = -1e30f;

// Owns copies of q, k, v and the masks, widened to f32; read-only after construction.
class AttentionRows {
 public:
  // first_mask: index of q_origin among the operands; the mask operands follow it.
  AttentionRows(const Call& call, size_t first_mask);

  // q's axes without head_dim, in order; m and r are values over them.
  std::vector<Axis> axes;
  int64_t keys = 0, head_dim = 0;
  float scale = 1;
  float kappa = 1;
  float soft_cap = 0;  // 0: none
  bool bf16 = false;
  bool sliced = false;            // products are of integers (N21)
  int64_t key_stride = 0;         // in k and v, elements; head_dim is contiguous
  std::vector<int64_t> q_at;      // first element of each row in q, o, do
  std::vector<int64_t> k_at;      // first element of each row's key 0 in k and v
  std::vector<int64_t> position;  // absolute position of each row's query
  std::vector<float> q, k, v;
  std::vector<numerics::SlicedRow> q_slices, k_slices, v_slices;  // of each row of head_dim, if sliced

  bool has_sink() const { return !sink_.empty(); }
  // The value with which the running maximum of a row begins (m0).
  float start_max(size_t row) const;
  // Returns whether the masks let the row attend to the key.
  bool sees(size_t row, int64_t key) const;
  // The score of a key before the exponential E of N9; *tanh_value (optional) receives t of the soft cap.
  float score(size_t row, int64_t key, float* tanh_value = nullptr) const;
  // The dot product of N6 or N7 over n elements, starting from `initial`.
  template <typename A, typename B>
  float contract(int64_t n, A&& a, B&& b, float initial = 0.0f) const {
    return bf16 ? numerics::dot_bf16(n, a, b, initial) : numerics::dot_f32(n, a, b, initial);
  }
  // p and ds as they enter a contraction: rounded to bf16 on the bf16 path.
  float factor(float x) const { return bf16 && !sliced ? numerics::round_to_bf16(x) : x; }

  // The slices of all rows of head_dim of an array.
  std::vector<numerics::SlicedRow> slices_of(const std::vector<float>& values) const;
  // Of a row of q, o or do, and of a row's key in k or v: the index of its slices.
  size_t query_index(size_t row) const { return static_cast<size_t>(q_at[row] / head_dim); }
  size_t key_index(size_t row, int64_t key) const {
    return static_cast<size_t>((k_at[row] + key * key_stride) / head_dim);
  }

 private:
  int64_t window_ = 0;
  bool causal_ = false;
  // One value per row (per key for key segments); empty when the operand is not given.
  std::vector<int64_t> prefix_, key_limit_, q_segment_, k_segment_, k_segment_at_;
  int64_t k_segment_stride_ = 0;
  std::vector<int64_t> visible_, visible_at_;  // visible_at_: of each row's key 0
  int64_t visible_stride_ = 0;
  std::vector<float> sink_;
};

}  // namespace ostro::interp
