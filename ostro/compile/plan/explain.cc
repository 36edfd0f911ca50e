// A Plan in words.
#include <fmt/format.h>

#include "ostro/compile/plan/plan.h"

namespace ostro::compile {
namespace {

std::string buffer_name(const Plan& plan, int32_t buffer) {
  const PlanBuffer& b = plan.buffers[static_cast<size_t>(buffer)];
  switch (b.kind) {
    case BufferKind::kParam: return fmt::format("param{}", b.index);
    case BufferKind::kResult: return fmt::format("result{}", b.index);
    case BufferKind::kConstant: return fmt::format("const{}", b.index);
    case BufferKind::kTemp: return fmt::format("@{}", b.offset);
  }
  return "?";
}

std::string view_text(const Plan& plan, const View& v) {
  std::string s = buffer_name(plan, v.buffer);
  if (v.offset != 0) s += fmt::format("+{}", v.offset);
  s += ' ' + v.shape.str();
  if (!v.dense()) s += fmt::format(" strides ({})", fmt::join(v.strides, ", "));
  return s;
}

void print(const Plan& plan, const Module& module, const std::string& indent, std::string& out) {
  for (const Step& step : plan.steps) {
    out += indent + kind_name(step.kind);
    if (step.kind == StepKind::kKernel)
      out += fmt::format(" k{}", step.kernel);
    else if (step.kind != StepKind::kCopy)
      out += fmt::format(" {}", ir::op_name(step.op));
    for (size_t i = 0; i < step.in.size(); ++i) out += (i == 0 ? " " : ", ") + view_text(plan, step.in[i]);
    out += " ->";
    for (size_t i = 0; i < step.out.size(); ++i) out += (i == 0 ? " " : ", ") + view_text(plan, step.out[i]);
    out += fmt::format("  [{:.3g} FLOP, {:.3g} bytes]", step.flops, step.bytes);
    if (!step.scope.empty()) out += "  # " + step.scope;
    out += '\n';
    for (const Step& epilogue : step.epilogues) {
      out += indent + "  and on its pieces " + ir::op_name(epilogue.op) + " ->";
      for (size_t i = 0; i < epilogue.out.size(); ++i)
        out += (i == 0 ? " " : ", ") + view_text(plan, epilogue.out[i]);
      out += '\n';
    }
    for (const Plan& region : step.regions) print(region, module, indent + "    ", out);
  }
  out += fmt::format("{}total: {} steps, {:.3g} FLOP, {:.3g} bytes moved, arena {} bytes\n", indent,
                     plan.steps.size(), plan.flops(), plan.bytes(), plan.arena_bytes);
}

}  // namespace

double Plan::flops() const {
  double total = 0;
  for (const Step& s : steps) total += s.flops;
  return total;
}

double Plan::bytes() const {
  double total = 0;
  for (const Step& s : steps) total += s.bytes;
  return total;
}

std::string print_plan(const Module& module) {
  std::string out;
  print(module.plan, module, "", out);
  return out;
}

}  // namespace ostro::compile
