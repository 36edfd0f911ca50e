#include "ostro/grad/scan_vjp.h"

#include <algorithm>
#include <set>

#include "ostro/grad/joint.h"

namespace ostro::grad_internal {
namespace {

using ir::Block;
using ir::DType;
using ir::Op;
using ir::OpKind;
using ir::ValueId;

enum class Source { kConst, kCarry, kX, kOp };

// True for an op that is cheap to compute again from values that are kept anyway: its result is never a
// residual. `use` inside a loop is always recomputed (docs/spec/grad.md), so that no cast copy of the weights
// is kept.
bool remade(const Op& op, const Block& block) {
  switch (op.kind) {
    case OpKind::constant:
    case OpKind::iota:
    case OpKind::use:
    case OpKind::broadcast: return true;
    case OpKind::cast:
      return ir::dtype_size(block.shape(op.operands[0]).dtype) <=
             ir::dtype_size(block.shape(op.results[0]).dtype);
    default: return ir::is_layout(op.kind) && op.operands.size() == 1;
  }
}

DType wide(DType d) { return d == DType::bf16 ? DType::f32 : d; }

}  // namespace

// Builds the joint block of the body and cuts it in two. The forward loop runs the forward ops and also
// returns the residuals: the forward values that the backward ops read and that are not parameters or cheap
// to make again. (A carry is a residual, because its value differs in every iteration and is no slice of an
// operand.) One backward step runs the backward ops and the forward ops that are made again.
Result<ScanForward> emit_scan_forward(ir::Builder& b, const Op& op, const std::vector<ValueId>& operands,
                                      const std::vector<char>& operand_active,
                                      const std::vector<char>& operand_use) {
  const Block& body = op.regions[0];
  const auto n_consts = static_cast<size_t>(op.attrs.i64("consts")),
             n_carries = static_cast<size_t>(op.attrs.i64("carries"));
  const size_t n_params = body.params.size(), n_results = body.results.size();

  JointRequest request;
  request.param_active = scan_active(op, operand_active);
  request.param_use = operand_use;
  for (size_t i = 0; i < n_carries; ++i) request.param_use[n_consts + i] = 0;
  request.result_active = active_results(body, request.param_active);
  for (size_t i = 0; i < n_carries; ++i) request.result_active[i] = request.param_active[n_consts + i];
  ASSIGN_OR_RETURN(Joint joint, build_joint(body, request));
  Block& all = joint.block;

  // The source of each forward value: a parameter of some kind, or an op.
  std::vector<std::pair<Source, size_t>> source(all.values.size(), {Source::kOp, 0});
  for (size_t i = 0; i < n_params; ++i)
    source[static_cast<size_t>(all.params[i])] = {i < n_consts               ? Source::kConst
                                                  : i < n_consts + n_carries ? Source::kCarry
                                                                             : Source::kX,
                                                  i};
  std::vector<int64_t> producer(all.values.size(), -1);
  for (size_t i = 0; i < all.ops.size(); ++i)
    for (ValueId v : all.ops[i].results) producer[static_cast<size_t>(v)] = static_cast<int64_t>(i);
  auto is_forward = [&](ValueId v) {
    const int64_t p = producer[static_cast<size_t>(v)];
    if (p >= 0) return p < static_cast<int64_t>(joint.forward_ops);
    return std::find(joint.ct_params.begin(), joint.ct_params.end(), v) == joint.ct_params.end();
  };

  // The forward values that the backward ops read: each is either a residual or computed again.
  std::set<ValueId> residuals;
  std::set<size_t> again, used_params;
  std::vector<ValueId> work;
  for (size_t i = joint.forward_ops; i < all.ops.size(); ++i)
    work.insert(work.end(), all.ops[i].operands.begin(), all.ops[i].operands.end());
  for (size_t i = 0; i < n_params; ++i)
    if (joint.param_cts_wide[i] >= 0) work.push_back(joint.param_cts_wide[i]);
  std::set<ValueId> seen;
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    if (!is_forward(v) || !seen.insert(v).second) continue;
    const int64_t p = producer[static_cast<size_t>(v)];
    if (p < 0) {
      const auto [kind, i] = source[static_cast<size_t>(v)];
      if (kind == Source::kCarry)
        residuals.insert(v);
      else
        used_params.insert(i);
    } else if (remade(all.ops[static_cast<size_t>(p)], all)) {
      again.insert(static_cast<size_t>(p));
      for (ValueId o : all.ops[static_cast<size_t>(p)].operands) work.push_back(o);
    } else {
      residuals.insert(v);
    }
  }

  ScanForward out;
  out.attrs = op.attrs;

  // The forward loop: the forward ops. Its results are the original ones, then the residuals.
  Block forward;
  {
    ir::Builder fb(forward);
    std::vector<ValueId> ids(all.values.size(), -1);
    for (size_t i = 0; i < n_params; ++i)
      ids[static_cast<size_t>(all.params[i])] = forward.add_param(all.shape(all.params[i]));
    for (size_t i = 0; i < joint.forward_ops; ++i) ir::append_copy(forward, all, all.ops[i], ids);
    for (ValueId v : joint.results) forward.results.push_back(ids[static_cast<size_t>(v)]);
    for (ValueId v : residuals) forward.results.push_back(ids[static_cast<size_t>(v)]);
  }
  const auto results = b.add_n(OpKind::scan, operands, op.attrs, {std::move(forward)});
  out.results.assign(results.begin(), results.begin() + static_cast<int64_t>(n_results));
  out.residuals.assign(results.begin() + static_cast<int64_t>(n_results), results.end());

  // One step backward.
  Block& back = out.backward;
  std::vector<ValueId> ids(all.values.size(), -1);
  auto add_param = [&](ValueId v) { ids[static_cast<size_t>(v)] = back.add_param(all.shape(v)); };
  for (size_t i : used_params)
    if (i < n_consts) {
      out.consts.push_back(i);
      add_param(all.params[i]);
    }
  size_t next_ct = 0;
  std::vector<ValueId> ct_of_result(n_results, -1);
  for (size_t i = 0; i < n_results; ++i)
    if (request.result_active[i] != 0) ct_of_result[i] = joint.ct_params[next_ct++];
  for (size_t i = 0; i < n_carries; ++i)
    if (ct_of_result[i] >= 0) {
      out.ct_carries.push_back(i);
      add_param(ct_of_result[i]);
    }
  std::vector<ValueId> accumulators;
  for (size_t i = 0; i < n_consts; ++i)
    if (joint.param_cts_wide[i] >= 0) {
      out.accumulated.push_back(i);
      const ir::Shape s = all.shape(all.params[i]);
      accumulators.push_back(back.add_param(s.with_dtype(wide(s.dtype))));
    }
  for (size_t i : used_params)
    if (i >= n_consts) {
      out.xs.push_back(i);
      add_param(all.params[i]);
    }
  for (ValueId v : residuals) add_param(v);
  for (size_t i = n_carries; i < n_results; ++i)
    if (ct_of_result[i] >= 0) {
      out.ct_ys.push_back(i);
      add_param(ct_of_result[i]);
    }
  for (size_t i = 0; i < all.ops.size(); ++i) {
    if (i < joint.forward_ops && again.count(i) == 0) continue;
    ir::append_copy(back, all, all.ops[i], ids);  // a residual stays the parameter
  }
  ir::Builder bb(back);
  for (size_t i : out.ct_carries) {
    const ValueId ct = joint.param_cts[n_consts + i];
    back.results.push_back(ct >= 0 ? ids[static_cast<size_t>(ct)]
                                   : bb.splat(0, all.shape(all.params[n_consts + i])));
  }
  for (size_t k = 0; k < out.accumulated.size(); ++k) {
    const ValueId ct = ids[static_cast<size_t>(joint.param_cts_wide[out.accumulated[k]])];
    back.results.push_back(bb.add(OpKind::add, {accumulators[k], ct}));
  }
  for (size_t i = n_consts + n_carries; i < n_params; ++i)
    if (joint.param_cts_wide[i] >= 0) {
      out.ct_xs.push_back(i);
      back.results.push_back(ids[static_cast<size_t>(joint.param_cts_wide[i])]);
    }
  return out;
}

// A loop in the other direction. Its carries are the cotangents of the carries and the accumulators of
// constants, which start from zero; its stacked results are the cotangents of the scanned operands.
Result<std::vector<ValueId>> emit_scan_backward(ir::Builder& b, const ScanForward& f,
                                                const std::vector<ValueId>& operands,
                                                const std::vector<ValueId>& cts) {
  const auto n_consts = static_cast<size_t>(f.attrs.i64("consts"));
  std::vector<ValueId> in;
  auto ct_or_zero = [&](size_t i) { return cts[i] >= 0 ? cts[i] : b.splat(0, b.shape(f.results[i])); };
  for (size_t i : f.consts) in.push_back(operands[i]);
  for (size_t i : f.ct_carries) in.push_back(ct_or_zero(i));
  for (size_t i : f.accumulated) {
    const ir::Shape s = b.shape(operands[i]);
    in.push_back(b.splat(0, s.with_dtype(wide(s.dtype))));
  }
  for (size_t i : f.xs) in.push_back(operands[i]);
  in.insert(in.end(), f.residuals.begin(), f.residuals.end());
  for (size_t i : f.ct_ys) in.push_back(ct_or_zero(i));

  const size_t carries = f.ct_carries.size() + f.accumulated.size();
  ir::Attrs attrs = f.attrs;
  attrs.set("consts", static_cast<int64_t>(f.consts.size()));
  attrs.set("carries", static_cast<int64_t>(carries));
  attrs.set("reverse", int64_t{f.attrs.i64("reverse", 0) == 0});
  ASSIGN_OR_RETURN(std::vector<ValueId> out,
                   b.try_add(OpKind::scan, std::move(in), std::move(attrs), {f.backward}));
  std::vector<ValueId> grads(operands.size(), -1);
  for (size_t k = 0; k < f.ct_carries.size(); ++k) grads[n_consts + f.ct_carries[k]] = out[k];
  for (size_t k = 0; k < f.accumulated.size(); ++k) grads[f.accumulated[k]] = out[f.ct_carries.size() + k];
  for (size_t k = 0; k < f.ct_xs.size(); ++k) grads[f.ct_xs[k]] = out[carries + k];
  return grads;
}

}  // namespace ostro::grad_internal
