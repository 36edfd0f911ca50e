#include "ostro/compile/plan/explain_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ostro/compile/plan/step_label.h"

namespace ostro::compile {
namespace {

struct Row {
  const Step* step;
  std::string place;
  double runs;
  size_t depth;

  bool is_leaf() const { return step->regions.empty(); }
};

// Of a branch both sides are listed; which one runs, the data decides.
void collect(const Plan& plan, const std::string& place, double runs, size_t depth, std::vector<Row>& rows) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    rows.push_back({&step, fmt::format("{}{}", place, i), runs, depth});
    for (size_t r = 0; r < step.regions.size(); ++r) {
      int64_t inside = 1;
      if (step.kind == StepKind::kLoop) inside = step.attrs.i64("length");
      if (step.kind == StepKind::kTiles && r == 0) inside = step.extent;
      collect(step.regions[r], fmt::format("{}{}.{}.", place, i, r), runs * static_cast<double>(inside),
              depth + 1, rows);
    }
  }
}

std::string amount(double x) {
  static constexpr const char* kPrefixes[] = {" ", "k", "M", "G", "T"};
  size_t i = 0;
  for (; x >= 999.5 && i + 1 < std::size(kPrefixes); ++i) x /= 1000;
  return i == 0 ? fmt::format("{:.0f}  ", x) : fmt::format("{:.3g} {}", x, kPrefixes[i]);
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

// Units of 1e9 a second.
double rate(double count, double seconds) { return seconds > 0 ? count / seconds * 1e-9 : 0; }

void append_reasons(const Row& row, const std::string& indent, std::string& out) {
  const Step& step = *row.step;
  // A function of a single op needs no list.
  if (step.ops.size() > 1) out += fmt::format("{}fused: {}\n", indent, ops_text(step.ops));
  std::vector<std::string> lines;
  for (const NotFused& n : step.not_fused) {
    Step producer;
    producer.op = n.producer.kind;
    producer.scope = n.producer.scope;
    std::string line =
        fmt::format("{}not fused with {} {}: {}\n", indent, step_name(producer), n.shape.str(), n.reason);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  for (const std::string& line : lines) out += line;
}

}  // namespace

double least_seconds(const Step& step, const MachineLimits& limits) {
  using ir::OpKind;
  const bool product =
      step.kind == StepKind::kOp &&
      (step.op == OpKind::dot || step.op == OpKind::expert_dot || step.op == OpKind::expert_outer ||
       step.op == OpKind::attention || step.op == OpKind::attention_grad);
  const bool bf16 = product && step.in[0].shape.dtype == ir::DType::bf16;
  return std::max(step.flops / (bf16 ? limits.bf16_flops : limits.f32_flops), step.bytes / limits.bytes);
}

std::string explain_plan(const std::string& name, const Module& module, const Measured* measured) {
  std::vector<Row> rows;
  collect(module.plan, "", 1, 0, rows);
  double flops = 0, bytes = 0, seconds = 0, least = 0, steps = 0;
  for (const Row& row : rows) {
    if (!row.is_leaf()) continue;
    steps += row.runs;
    flops += row.runs * row.step->flops;
    bytes += row.runs * row.step->bytes;
    if (measured == nullptr) continue;
    const double s = measured->seconds(row.place, step_name(*row.step));
    if (s < 0) continue;
    seconds += row.runs * s;
    least += row.runs * least_seconds(*row.step, measured->limits);
  }
  std::string out = fmt::format("{}: {}FLOP, {}B read and written, {:.0f} runs of steps, arena {:.1f} MiB\n",
                                name, amount(flops), amount(bytes), steps,
                                static_cast<double>(module.plan.arena_bytes) / (1024.0 * 1024.0));
  if (measured != nullptr)
    out += fmt::format(
        "{:.3f} ms in its steps, {:.0f} % of the limit; here that is {:.0f} GFLOP/s in f32, {:.0f} in bf16 "
        "products, {:.1f} GB/s\n",
        seconds * 1e3, percent(least, seconds), measured->limits.f32_flops * 1e-9,
        measured->limits.bf16_flops * 1e-9, measured->limits.bytes * 1e-9);
  out +=
      fmt::format("{:>10} {:>6} {:>8} {:>6} {:>8} {:>6}", "step", "runs", "FLOP", "share", "bytes", "share");
  if (measured != nullptr)
    out += fmt::format(" {:>9} {:>6} {:>8} {:>6} {:>6}", "us a run", "share", "GFLOP/s", "GB/s", "limit");
  out += "  name -> results\n";
  for (const Row& row : rows) {
    const Step& step = *row.step;
    const std::string label = std::string(2 * row.depth, ' ') + step_name(step);
    if (!row.is_leaf()) {
      out += fmt::format("{:>10} {:>6.0f} {:{}}  {}", row.place, row.runs, "", measured != nullptr ? 71 : 31,
                         label);
      if (step.kind == StepKind::kLoop) out += fmt::format(", {} times", step.attrs.i64("length"));
      if (step.kind == StepKind::kTiles)
        out += fmt::format(", {} times{}", step.extent, step.regions.size() > 1 ? " and the rest" : "");
      out += '\n';
      continue;
    }
    out += fmt::format("{:>10} {:>6.0f} {:>8} {:>5.1f}% {:>8} {:>5.1f}%", row.place, row.runs,
                       amount(row.runs * step.flops), percent(row.runs * step.flops, flops),
                       amount(row.runs * step.bytes), percent(row.runs * step.bytes, bytes));
    if (measured != nullptr) {
      const double s = measured->seconds(row.place, step_name(step));
      if (s < 0)
        out += fmt::format(" {:>39}", "did not run");
      else
        out += fmt::format(" {:>9.1f} {:>5.1f}% {:>8.1f} {:>6.1f} {:>5.0f}%", s * 1e6,
                           percent(row.runs * s, seconds), rate(step.flops, s), rate(step.bytes, s),
                           percent(least_seconds(step, measured->limits), s));
    }
    out += fmt::format("  {} -> {}\n", label, shapes_text(step.out));
    append_reasons(row, std::string((measured != nullptr ? 94 : 54) + 2 * row.depth, ' '), out);
  }
  return out;
}

}  // namespace ostro::compile
