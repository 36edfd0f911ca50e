#include "ostro/compile/plan/step_label.h"

#include <fmt/format.h>

namespace ostro::compile {

std::string shapes_text(const std::vector<View>& views) {
  std::string text;
  for (const View& v : views) text += (text.empty() ? "" : ", ") + v.shape.str();
  return text;
}

SpanLabelPtr step_label(const Step& step, const std::string& program, const std::string& place) {
  auto label = std::make_shared<SpanLabel>();
  label->name = step_name(step);
  label->category = step.kind == StepKind::kTiles ? "loop" : kind_name(step.kind);
  label->details = {{"program", program}, {"plan_step", place}};
  if (step.kind == StepKind::kKernel) {
    label->details.emplace_back("kernel", fmt::format("k{}", step.kernel));
    label->details.emplace_back("ops", ops_text(step.ops));
  }
  label->details.emplace_back("in", shapes_text(step.in));
  label->details.emplace_back("out", shapes_text(step.out));
  label->flops = step.flops;
  label->bytes = step.bytes;
  return label;
}

}  // namespace ostro::compile
