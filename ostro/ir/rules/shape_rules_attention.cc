// Shape rule of attention and its gradient (docs/spec/ops.md).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ostro/ir/program/attention_limits.h"
#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir::rules {
namespace {

// q [.., query, .., head_dim], k and v [.., key, .., head_dim].
Status check_values(const Op& op, In in) {
  const Shape &q = in[0], &k = in[1], &v = in[2];
  const auto &query = op.attrs.str("query"), &key = op.attrs.str("key"), &head = op.attrs.str("head_dim");
  for (const auto& n : {query, head})
    if (!q.has(n)) return fail(op, fmt::format("q {} has no axis \"{}\"", q.str(), n));
  for (const auto& n : {key, head})
    if (!k.has(n) || !v.has(n))
      return fail(op, fmt::format("k {} or v {} has no axis \"{}\"", k.str(), v.str(), n));
  if (k.axes != v.axes) return fail(op, fmt::format("k {} and v {} differ", k.str(), v.str()));
  if (q.dtype != k.dtype || q.dtype != v.dtype || (q.dtype != DType::f32 && q.dtype != DType::bf16))
    return fail(op, fmt::format("q, k, v are {}, {}, {}; all must be f32 or all bf16", dtype_name(q.dtype),
                                dtype_name(k.dtype), dtype_name(v.dtype)));
  for (const Axis& a : k.axes)
    if (a.name != key && (!q.has(a.name) || q.size_of(a.name) != a.size))
      return fail(
          op, fmt::format("axis \"{}\" of k {} is not in q {}; q may have more axes (head groups), k may not",
                          a.name, k.str(), q.str()));
  if (q.axes.back().name != head || k.axes.back().name != head)
    return fail(op,
                fmt::format("axis \"{}\" must be last in q {} and k {}; transpose", head, q.str(), k.str()));
  if (q.axes.back().size < 1 || q.axes.back().size > kMaxHeadDim)
    return fail(op, fmt::format("axis \"{}\" of q {} is {}; a head is 1 to {} wide, use more heads", head,
                                q.str(), q.axes.back().size, kMaxHeadDim));
  return Status();
}

// Checks the values that the forward pass saved for the gradient (o, m and r), and the cotangent of o.
Status check_saved(const Op& op, In in, const Shape& row) {
  const Shape& q = in[0];
  if (in[3] != q || in[6] != q || in[4] != row || in[5] != row)
    return fail(op, fmt::format("o {}, m {}, r {} and do {} do not fit q {}", in[3].str(), in[4].str(),
                                in[5].str(), in[6].str(), q.str()));
  return Status();
}

// Walks the mask operands in the order of ops.md. `in` begins with q_origin.
class MaskOperands {
 public:
  MaskOperands(const Op& op, const Shape& q, const Shape& k, In in)
      : op_(op), q_(q), k_(k), query_(op.attrs.str("query")), key_(op.attrs.str("key")), in_(in) {}

  Status check() {
    for (const Axis& a : k_.axes)
      if (a.name != key_ && a.name != op_.attrs.str("head_dim")) batch_.push_back(a.name);
    std::vector<std::string> of_queries = batch_, of_keys = batch_, of_both = batch_;
    of_queries.push_back(query_);
    of_keys.push_back(key_);
    of_both.insert(of_both.end(), {query_, key_});
    RETURN_IF_ERROR(next("q_origin", {DType::i32, DType::i64}, batch_));
    if (given("segments")) {
      RETURN_IF_ERROR(next("q_segments", {DType::i32}, of_queries));
      RETURN_IF_ERROR(next("k_segments", {DType::i32}, of_keys));
      RETURN_IF_ERROR(has_keys("k_segments"));
    }
    if (given("prefix")) RETURN_IF_ERROR(next("prefix", {DType::i32}, batch_));
    if (given("key_limit")) RETURN_IF_ERROR(next("key_limit", {DType::i32}, batch_));
    if (given("visible")) {
      RETURN_IF_ERROR(next("visible", {DType::boolean}, of_both));
      RETURN_IF_ERROR(has_keys("visible"));
    }
    if (given("sink")) RETURN_IF_ERROR(sink());
    if (at_ != in_.size())
      return fail(op_,
                  fmt::format("{} operands behind q, k, v for attributes that ask for {}", in_.size(), at_));
    return Status();
  }

 private:
  bool given(const char* attribute) const { return op_.attrs.i64(attribute, 0) != 0; }

  Status next(const char* name, std::initializer_list<DType> dtypes, const std::vector<std::string>& axes) {
    if (at_ == in_.size()) return fail(op_, fmt::format("{} is missing", name));
    const Shape& s = in_[at_++];
    if (std::find(dtypes.begin(), dtypes.end(), s.dtype) == dtypes.end())
      return fail(op_, fmt::format("{} is {}; it must be {}", name, s.str(), dtype_name(*dtypes.begin())));
    for (const Axis& a : s.axes) {
      const Shape& whole = a.name == key_ ? k_ : q_;
      if (std::find(axes.begin(), axes.end(), a.name) == axes.end() || whole.size_of(a.name) != a.size)
        return fail(op_, fmt::format("axis \"{}\" of {} {} is none of [{}] of q {} and k {}", a.name, name,
                                     s.str(), fmt::join(axes, ", "), q_.str(), k_.str()));
    }
    return Status();
  }

  Status has_keys(const char* name) const {
    const Shape& s = in_[at_ - 1];
    if (s.has(key_)) return Status();
    return fail(op_, fmt::format("{} {} has no axis \"{}\"", name, s.str(), key_));
  }

  // One logit per head. Its gradient (N9) is one chain of additions over the batch axes, then over queries:
  // no batch axis may come after the query axis.
  Status sink() {
    std::vector<std::string> heads;
    bool behind = false;
    for (const Axis& a : q_.axes) {
      if (a.name == query_) {
        behind = true;
      } else if (a.name != op_.attrs.str("head_dim") && (!k_.has(a.name) || behind)) {
        heads.push_back(a.name);
        for (size_t i = 0; i < at_; ++i)
          if (in_[i].has(a.name))
            return fail(op_, fmt::format("with a sink axis \"{}\" of a mask must stand before \"{}\" in q {}",
                                         a.name, query_, q_.str()));
      }
    }
    RETURN_IF_ERROR(next("sink", {DType::f32}, heads));
    if (in_[at_ - 1].axes.size() != heads.size())
      return fail(op_, fmt::format("sink {} has not all head axes [{}]; broadcast it", in_[at_ - 1].str(),
                                   fmt::join(heads, ", ")));
    return Status();
  }

  const Op& op_;
  const Shape &q_, &k_;
  const std::string query_, key_;
  In in_;
  size_t at_ = 0;
  std::vector<std::string> batch_;  // axes that q and k share
};

}  // namespace

Status attention_attributes(const Op& op) {
  const double scale = op.attrs.f64("scale"), soft_cap = op.attrs.f64("soft_cap", 0.0);
  if (!(scale > 0) || !std::isfinite(scale)) return fail(op, fmt::format("scale {} is not above 0", scale));
  if (!(soft_cap >= 0) || !std::isfinite(soft_cap))
    return fail(op, fmt::format("soft_cap {}; use 0 for none", soft_cap));
  if (op.attrs.i64("window", 0) < 0)
    return fail(op, fmt::format("window {}; use 0 for all keys", op.attrs.i64("window", 0)));
  if (const int64_t slices = op.attrs.i64("int8_slices", 0); slices != 0 && slices != kInt8Slices)
    return fail(op, fmt::format("int8_slices {}; use 0 for products of floats or {} for those of integers",
                                slices, kInt8Slices));
  return Status();
}

Shapes attention(const Op& op, In in) {
  const bool gradient = op.kind == OpKind::attention_grad;
  RETURN_IF_ERROR(attention_attributes(op));
  RETURN_IF_ERROR(check_values(op, in));
  const Shape &q = in[0], &k = in[1];
  const Shape row = q.without(op.attrs.str("head_dim")).with_dtype(DType::f32);
  if (gradient) RETURN_IF_ERROR(check_saved(op, in, row));
  RETURN_IF_ERROR(MaskOperands(op, q, k, in.subspan(gradient ? 7 : 3)).check());
  if (!gradient) return std::vector<Shape>{q, row, row};
  std::vector<Shape> out{q.with_dtype(DType::f32), k.with_dtype(DType::f32), k.with_dtype(DType::f32)};
  if (op.attrs.i64("sink", 0) != 0) out.push_back(in.back());
  return out;
}

}  // namespace ostro::ir::rules
