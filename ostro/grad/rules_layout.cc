// VJP rules of layout ops and of gather, scatter and slices with a run-time start.
#include <fmt/format.h>

#include "ostro/grad/vjp.h"

namespace ostro::grad_internal {

using ir::Axis;
using ir::DType;
using ir::OpKind;
using ir::ValueId;

namespace {

using Names = std::vector<std::string>;

// The cotangent of slice's operand: zeros where the slice took nothing. A stride is undone by stacking zeros
// behind every element.
ValueId unslice(RuleContext& c, ValueId ct) {
  const std::string& axis = c.op.attrs.str("axis");
  const int64_t start = c.op.attrs.i64("start"), stride = c.op.attrs.i64("stride", 1);
  const int64_t n = c.in(0).size_of(axis);
  ir::Builder& b = c.b;
  int64_t covered = b.shape(ct).size_of(axis);
  if (stride > 1 && covered > 0) {
    // Interleave with zeros: stack behind the axis, then merge.
    std::vector<ValueId> parts{ct};
    for (int64_t i = 1; i < stride; ++i) parts.push_back(b.splat(0, b.shape(ct)));
    const std::string inner = axis + "'";
    const int64_t position = b.shape(ct).find(axis) + 1;
    ct = b.add(OpKind::stack, parts, {{"axis", inner}, {"position", position}});
    ct = b.add(OpKind::merge_axes, {ct}, {{"axes", Names{axis, inner}}, {"axis", axis}});
    covered *= stride;
    if (start + covered > n) {
      covered = n - start;
      ct = b.add(OpKind::slice, {ct}, {{"axis", axis}, {"start", int64_t{0}}, {"size", covered}});
    }
  }
  if (covered == n) return ct;
  return b.add(OpKind::pad, {ct}, {{"axis", axis}, {"low", start}, {"high", n - start - covered}});
}

}  // namespace

Status layout_rule(RuleContext& c) {
  ir::Builder& b = c.b;
  const ir::Attrs& attrs = c.op.attrs;
  switch (c.op.kind) {
    case OpKind::broadcast: {
      Names added;
      for (const Axis& a : c.out().axes)
        if (!c.in(0).has(a.name)) added.push_back(a.name);
      ValueId ct = c.ct[0];
      const std::string acc = b.shape(ct).dtype == DType::f64 ? "f64" : "f32";
      if (!added.empty())
        ct = b.add(OpKind::sum, {ct}, {{"axes", added}, {"order", std::string("serial")}, {"acc", acc}});
      c.add(0, b.transpose(ct, c.in(0).names()));
      return Status();
    }
    case OpKind::transpose: c.add(0, b.transpose(c.ct[0], c.in(0).names())); return Status();
    case OpKind::rename: c.add(0, b.rename(c.ct[0], attrs.strs("to"), attrs.strs("from"))); return Status();
    case OpKind::split_axis:
      c.add(0, b.add(OpKind::merge_axes, {c.ct[0]},
                     {{"axes", attrs.strs("axes")}, {"axis", attrs.str("axis")}}));
      return Status();
    case OpKind::merge_axes: {
      std::vector<int64_t> sizes;
      for (const auto& a : attrs.strs("axes")) sizes.push_back(c.in(0).size_of(a));
      c.add(0, b.add(OpKind::split_axis, {c.ct[0]},
                     {{"axis", attrs.str("axis")}, {"axes", attrs.strs("axes")}, {"sizes", sizes}}));
      return Status();
    }
    case OpKind::slice: c.add(0, unslice(c, c.ct[0])); return Status();
    case OpKind::pad:
      c.add(0, b.add(OpKind::slice, {c.ct[0]},
                     {{"axis", attrs.str("axis")},
                      {"start", attrs.i64("low")},
                      {"size", c.in(0).size_of(attrs.str("axis"))}}));
      return Status();
    case OpKind::concat: {
      std::vector<int64_t> sizes;
      for (size_t i = 0; i < c.op.operands.size(); ++i) sizes.push_back(c.in(i).size_of(attrs.str("axis")));
      const auto parts = b.add_n(OpKind::split, {c.ct[0]}, {{"axis", attrs.str("axis")}, {"sizes", sizes}});
      for (size_t i = 0; i < parts.size(); ++i) c.add(i, parts[i]);
      return Status();
    }
    case OpKind::stack: {
      const auto parts = b.add_n(OpKind::unstack, {c.ct[0]}, {{"axis", attrs.str("axis")}});
      for (size_t i = 0; i < parts.size(); ++i) c.add(i, parts[i]);
      return Status();
    }
    case OpKind::split:
    case OpKind::unstack: {
      // All parts in one dtype: a missing cotangent follows the present ones.
      DType dtype = c.out().dtype;
      for (ValueId v : c.ct)
        if (v >= 0) dtype = b.shape(v).dtype;
      std::vector<ValueId> parts;
      for (size_t i = 0; i < c.ct.size(); ++i)
        parts.push_back(c.ct[i] >= 0 ? c.ct[i] : b.splat(0, c.out(i).with_dtype(dtype)));
      if (c.op.kind == OpKind::split)
        c.add(0, b.add(OpKind::concat, parts, {{"axis", attrs.str("axis")}}));
      else
        c.add(0, b.add(OpKind::stack, parts,
                       {{"axis", attrs.str("axis")}, {"position", c.in(0).find(attrs.str("axis"))}}));
      return Status();
    }
    case OpKind::reverse: c.add(0, b.add(OpKind::reverse, {c.ct[0]}, attrs)); return Status();
    default: return no_derivative(c.op);
  }
}

Status indexed_rule(RuleContext& c) {
  ir::Builder& b = c.b;
  const std::string& axis = c.op.attrs.str("axis");
  switch (c.op.kind) {
    case OpKind::dynamic_slice: {
      const ValueId zeros = b.splat(0, c.in(0).with_dtype(b.shape(c.ct[0]).dtype));
      c.add(0, b.add(OpKind::dynamic_update_slice, {zeros, c.ct[0], c.x(1)}, {{"axis", axis}}));
      return Status();
    }
    case OpKind::dynamic_update_slice: {
      if (!c.in(2).axes.empty())
        return unsupported(fmt::format(
            "dynamic_update_slice with one start per example has no derivative ({})", c.op.location));
      const ValueId zeros = b.splat(0, c.in(1).with_dtype(b.shape(c.ct[0]).dtype));
      if (c.wanted(0))
        c.add(0, b.add(OpKind::dynamic_update_slice, {c.ct[0], zeros, c.x(2)}, {{"axis", axis}}));
      if (c.wanted(1))
        c.add(1, b.add(OpKind::dynamic_slice, {c.ct[0], c.x(2)},
                       {{"axis", axis}, {"size", c.in(1).size_of(axis)}}));
      return Status();
    }
    case OpKind::gather: {
      if (c.in(0).dtype == DType::f64) return no_derivative(c.op);  // scatter_add has none
      Names batch;
      for (const Axis& a : c.in(1).axes)
        if (c.in(0).has(a.name)) batch.push_back(a.name);
      const ValueId sum = b.add(
          OpKind::scatter_add, {c.ct[0], c.x(1), c.x(2)},
          {{"axis", axis}, {"size", c.in(0).size_of(axis)}, {"position", int64_t{0}}, {"batch", batch}});
      c.add(0, b.transpose(sum, c.in(0).names()));
      return Status();
    }
    case OpKind::scatter_add:
      c.add(0,
            b.transpose(b.add(OpKind::gather, {c.ct[0], c.x(1), c.x(2)}, {{"axis", axis}}), c.in(0).names()));
      return Status();
    case OpKind::sort:
    case OpKind::top_k: {
      // Each result element came from one place: scatter it back there.
      if (c.in(0).dtype == DType::f64) return no_derivative(c.op);
      const std::string moved = axis + "'";
      Names batch;
      for (const Axis& a : c.in(0).axes)
        if (a.name != axis) batch.push_back(a.name);
      const ValueId order = b.rename(c.y(1), {axis}, {moved});
      const ValueId update = b.rename(c.ct[0], {axis}, {moved});
      const ValueId sum = b.add(
          OpKind::scatter_add, {update, order, b.i64_scalar(0)},
          {{"axis", axis}, {"size", c.in(0).size_of(axis)}, {"position", int64_t{0}}, {"batch", batch}});
      c.add(0, b.transpose(sum, c.in(0).names()));
      return Status();
    }
    default: return no_derivative(c.op);
  }
}

}  // namespace ostro::grad_internal
