// active_values: finds the values that a derivative flows through.
#include "ostro/grad/joint.h"
#include "ostro/grad/vjp.h"

namespace ostro::grad_internal {

std::vector<char> active_values(const ir::Block& f, const std::vector<char>& param_active) {
  std::vector<char> active(f.values.size(), 0);
  for (size_t i = 0; i < f.params.size(); ++i) active[static_cast<size_t>(f.params[i])] = param_active[i];
  for (const ir::Op& op : f.ops) {
    std::vector<char> in;
    bool any = false;
    for (ir::ValueId v : op.operands) {
      in.push_back(active[static_cast<size_t>(v)]);
      any |= in.back() != 0;
    }
    if (!any || !has_derivative(op.kind)) continue;
    std::vector<char> out(op.results.size(), 1);
    if (op.kind == ir::OpKind::scan) {
      out = active_results(op.regions[0], scan_active(op, in));
    } else if (op.kind == ir::OpKind::cond) {
      const std::vector<char> args(in.begin() + 1, in.end());
      const auto a = active_results(op.regions[0], args), b = active_results(op.regions[1], args);
      for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(a[i] | b[i]);
    }
    for (size_t i = 0; i < op.results.size(); ++i)
      if (out[i] != 0 && ir::is_floating(f.shape(op.results[i]).dtype))
        active[static_cast<size_t>(op.results[i])] = 1;
  }
  return active;
}

std::vector<char> active_results(const ir::Block& f, const std::vector<char>& param_active) {
  const auto active = active_values(f, param_active);
  std::vector<char> out;
  for (ir::ValueId v : f.results) out.push_back(active[static_cast<size_t>(v)]);
  return out;
}

std::vector<char> scan_active(const ir::Op& scan, std::vector<char> operand_active) {
  const auto consts = static_cast<size_t>(scan.attrs.i64("consts"));
  const auto carries = static_cast<size_t>(scan.attrs.i64("carries"));
  for (bool changed = true; changed;) {
    changed = false;
    const auto out = active_results(scan.regions[0], operand_active);
    for (size_t i = 0; i < carries; ++i)
      if (out[i] != 0 && operand_active[consts + i] == 0) {
        operand_active[consts + i] = 1;
        changed = true;
      }
  }
  return operand_active;
}

}  // namespace ostro::grad_internal
