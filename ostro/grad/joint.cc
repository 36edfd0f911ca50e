#include "ostro/grad/joint.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "ostro/grad/scan_vjp.h"
#include "ostro/grad/vjp.h"
#include "ostro/ir/text/canonical_order.h"

namespace ostro::grad_internal {
namespace {

using ir::Block;
using ir::DType;
using ir::Op;
using ir::OpKind;
using ir::ValueId;

// One forward op in the joint block, with the inputs of its backward part.
struct TapeEntry {
  Op op;                            // a copy: the block's list of ops grows while rules run
  std::vector<ValueId> residuals;   // custom: behind the results
  std::optional<ScanForward> scan;  // scan: the extended loop
};

// Forward: copies f's ops, in order, and puts those with an active operand on the tape. Backward: walks the
// tape from the end; an op whose results have a cotangent gets the ops of its rule. `contributions_` collects
// the cotangents of a value until the op that made it is reached; then they are added in the order in which
// they came.
class Builder {
 public:
  Builder(const Block& f, const JointRequest& request) : f_(f), request_(request), b_(joint_.block) {}

  Result<Joint> build() {
    RETURN_IF_ERROR(forward());
    joint_.forward_ops = joint_.block.ops.size();
    RETURN_IF_ERROR(seed());
    for (auto entry = tape_.rbegin(); entry != tape_.rend(); ++entry) RETURN_IF_ERROR(backward(*entry));
    b_.set_scope("");
    b_.set_location("");
    for (size_t i = 0; i < f_.params.size(); ++i) {
      const ValueId v = joint_.block.params[i];
      joint_.param_cts_wide.push_back(request_.param_active[i] != 0 ? wide_cotangent(v) : -1);
      joint_.param_cts.push_back(request_.param_active[i] != 0 ? cotangent(v) : -1);
    }
    return std::move(joint_);
  }

 private:
  Status forward() {
    Block& out = joint_.block;
    const std::vector<char> f_active = active_values(f_, request_.param_active);
    std::vector<ValueId> ids(f_.values.size(), -1);
    for (size_t i = 0; i < f_.params.size(); ++i) {
      ids[static_cast<size_t>(f_.params[i])] = out.add_param(f_.shape(f_.params[i]));
      mark(out.params[i], request_.param_active[i], request_.param_use[i]);
    }
    for (const Op& op : f_.ops) {
      std::vector<ValueId> operands;
      bool any = false;
      for (ValueId v : op.operands) {
        operands.push_back(ids[static_cast<size_t>(v)]);
        any |= active_[static_cast<size_t>(operands.back())] != 0;
      }
      b_.set_scope(op.scope);
      b_.set_location(op.location);
      TapeEntry entry;
      std::vector<ValueId> results;
      if (any && op.kind == OpKind::custom) {
        results = inline_block(b_, op.regions[1], operands);
        entry.residuals.assign(results.begin() + static_cast<int64_t>(op.results.size()), results.end());
        results.resize(op.results.size());
        // A result that is an operand (stop_gradient) becomes a value of its own: the cotangents of both
        // differ.
        for (ValueId& r : results)
          if (std::find(operands.begin(), operands.end(), r) != operands.end())
            r = b_.add(OpKind::cast, {r}, {{"dtype", std::string(ir::dtype_name(b_.shape(r).dtype))}});
      } else if (any && op.kind == OpKind::scan) {
        std::vector<char> in_active, in_use;
        for (ValueId v : operands) {
          in_active.push_back(active_[static_cast<size_t>(v)]);
          in_use.push_back(use_[static_cast<size_t>(v)]);
        }
        ASSIGN_OR_RETURN(ScanForward scan, emit_scan_forward(b_, op, operands, in_active, in_use));
        results = scan.results;
        entry.scan = std::move(scan);
      } else {
        results = b_.add_n(op.kind, operands, op.attrs, op.regions);
        out.ops.back().label = op.label;
      }
      const bool use =
          op.kind == OpKind::use || (ir::is_layout(op.kind) && use_[static_cast<size_t>(operands[0])] != 0);
      grow_marks();
      for (size_t i = 0; i < results.size(); ++i) {
        ids[static_cast<size_t>(op.results[i])] = results[i];
        mark(results[i], f_active[static_cast<size_t>(op.results[i])], use);
      }
      if (!any) continue;
      entry.op = op;
      entry.op.operands = operands;
      entry.op.results = results;
      tape_.push_back(std::move(entry));
    }
    for (ValueId v : f_.results) joint_.results.push_back(ids[static_cast<size_t>(v)]);
    return Status();
  }

  Status seed() {
    if (request_.unit_seed) {
      const ir::Shape s = b_.shape(joint_.results[0]);
      if (!s.axes.empty() || !ir::is_floating(s.dtype))
        return invalid_argument(
            fmt::format("the value to differentiate is {}; it must be a floating scalar: sum it", s.str()));
      contribute(joint_.results[0], b_.splat(1, s));
      return Status();
    }
    for (size_t i = 0; i < joint_.results.size(); ++i) {
      if (request_.result_active[i] == 0) continue;
      joint_.ct_params.push_back(joint_.block.add_param(b_.shape(joint_.results[i])));
      contribute(joint_.results[i], joint_.ct_params.back());
    }
    return Status();
  }

  Status backward(const TapeEntry& entry) {
    const Op& op = entry.op;
    std::vector<ValueId> cts;
    bool any = false;
    b_.set_scope(op.scope);
    b_.set_location(op.location);
    for (ValueId v : op.results) {
      cts.push_back(is_active(v) ? cotangent(v) : -1);
      any |= cts.back() >= 0;
    }
    if (!any) return Status();
    if (entry.scan) {
      ASSIGN_OR_RETURN(std::vector<ValueId> grads, emit_scan_backward(b_, *entry.scan, op.operands, cts));
      for (size_t i = 0; i < grads.size(); ++i) contribute(op.operands[i], grads[i]);
      return Status();
    }
    if (op.kind == OpKind::custom) {
      std::vector<ValueId> args = entry.residuals;
      for (size_t i = 0; i < op.results.size(); ++i)
        args.push_back(cts[i] >= 0 ? cts[i] : b_.splat(0, b_.shape(op.results[i])));
      const auto grads = inline_block(b_, op.regions[2], args);
      for (size_t i = 0; i < grads.size(); ++i) contribute(op.operands[i], grads[i]);
      return Status();
    }
    if (op.kind == OpKind::cond) return backward_cond(op, cts);
    std::vector<ValueId> made;
    RuleContext context{b_, op, cts, [&](size_t i) { return is_active(op.operands[i]); },
                        [&](size_t i, ValueId v) {
                          if (contribute(op.operands[i], v)) made.push_back(v);
                        }};
    const size_t first_op = joint_.block.ops.size();
    RETURN_IF_ERROR(apply_rule(context));
    // Rules are C++ expressions too: the compiler chooses the order in which their ops are appended.
    ir::canonical_order(joint_.block, first_op, made);
    return Status();
  }

  // The backward part is a second cond on the same predicate. Each branch runs its forward part again and
  // then its backward part, and returns the gradients of all wanted operands, zeros where it does not use
  // one: both branches must return the same shapes.
  Status backward_cond(const Op& op, const std::vector<ValueId>& cts) {
    JointRequest request;
    std::vector<size_t> wanted;
    for (size_t i = 1; i < op.operands.size(); ++i) {
      request.param_active.push_back(is_active(op.operands[i]));
      request.param_use.push_back(use_[static_cast<size_t>(op.operands[i])]);
      if (request.param_active.back() != 0) wanted.push_back(i);
    }
    std::vector<ValueId> operands = op.operands;
    for (size_t i = 0; i < cts.size(); ++i) {
      request.result_active.push_back(cts[i] >= 0);
      if (cts[i] >= 0) operands.push_back(cts[i]);
    }
    std::vector<Block> branches;
    for (const Block& region : op.regions) {
      ASSIGN_OR_RETURN(Joint joint, build_joint(region, request));
      ir::Builder inner(joint.block);
      for (size_t i : wanted) {
        ValueId v = joint.param_cts_wide[i - 1];
        const ir::Shape s = region.shape(region.params[i - 1]);
        const DType d = s.dtype == DType::f64 ? DType::f64 : DType::f32;
        joint.block.results.push_back(v >= 0 ? inner.cast(v, d) : inner.splat(0, s.with_dtype(d)));
      }
      branches.push_back(std::move(joint.block));
    }
    const auto grads = b_.add_n(OpKind::cond, operands, {}, std::move(branches));
    for (size_t i = 0; i < wanted.size(); ++i) contribute(op.operands[wanted[i]], grads[i]);
    return Status();
  }

  bool is_active(ValueId v) const {
    return static_cast<size_t>(v) < active_.size() && active_[static_cast<size_t>(v)] != 0;
  }
  void grow_marks() {
    active_.resize(joint_.block.values.size(), 0);
    use_.resize(joint_.block.values.size(), 0);
    contributions_.resize(joint_.block.values.size());
  }
  void mark(ValueId v, bool active, bool use) {
    grow_marks();
    active_[static_cast<size_t>(v)] =
        static_cast<char>(active_[static_cast<size_t>(v)] | static_cast<char>(active));
    use_[static_cast<size_t>(v)] = static_cast<char>(use);
  }
  bool contribute(ValueId v, ValueId ct) {
    if (ct < 0 || !is_active(v)) return false;
    contributions_[static_cast<size_t>(v)].push_back(ct);
    return true;
  }

  // The sum of all contributions, added in the order in which they were made (last use first); -1 when there
  // is none.
  ValueId wide_cotangent(ValueId v) {
    auto& list = contributions_[static_cast<size_t>(v)];
    if (list.empty()) return -1;
    ValueId sum = list[0];
    for (size_t i = 1; i < list.size(); ++i) sum = b_.add(OpKind::add, {sum, list[i]});
    list = {sum};
    return sum;
  }
  // The sum in the value's dtype; in f32 for a bf16 value that comes from `use`, whose gradient is not
  // rounded to bf16.
  ValueId cotangent(ValueId v) {
    const ValueId sum = wide_cotangent(v);
    if (sum < 0) return -1;
    const DType d = b_.shape(v).dtype;
    return b_.cast(sum, d == DType::bf16 && use_[static_cast<size_t>(v)] != 0 ? DType::f32 : d);
  }

  const Block& f_;
  const JointRequest& request_;
  Joint joint_;
  ir::Builder b_;
  std::vector<char> active_, use_;
  std::vector<std::vector<ValueId>> contributions_;
  std::vector<TapeEntry> tape_;
};

}  // namespace

Result<Joint> build_joint(const Block& f, const JointRequest& request) { return Builder(f, request).build(); }

}  // namespace ostro::grad_internal
