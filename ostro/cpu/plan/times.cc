#include "ostro/cpu/plan/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "ostro/compile/plan/step_label.h"

namespace ostro::cpu {
namespace {

double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::string what(const compile::Step& step) {
  std::string text = compile::step_name(step) + " -> " + compile::shapes_text(step.out);
  if (text.size() > 110) text.replace(107, std::string::npos, "...");
  return text;
}

}  // namespace

bool plan_times_wanted() {
  const char* text = std::getenv("OSTRO_PLAN_TIMES");
  return text != nullptr && *text != '\0';
}

StepTimer::StepTimer(StepTime* time, const SpanLabelPtr* label) : span_(label), time_(time) {
  if (time_ == nullptr) return;
  cpu_ = now(CLOCK_PROCESS_CPUTIME_ID);
  wall_ = now(CLOCK_MONOTONIC);
}

StepTimer::~StepTimer() {
  if (time_ == nullptr) return;
  ++time_->runs;
  time_->wall += now(CLOCK_MONOTONIC) - wall_;
  time_->cpu += now(CLOCK_PROCESS_CPUTIME_ID) - cpu_;
}

std::string print_times(const std::string& program, std::vector<StepRow> rows) {
  std::erase_if(rows, [](const StepRow& r) { return r.time.runs == 0 || !r.step->regions.empty(); });
  if (rows.empty()) return "";
  std::sort(rows.begin(), rows.end(),
            [](const StepRow& a, const StepRow& b) { return a.time.cpu > b.time.cpu; });
  double total = 0;
  for (const StepRow& r : rows) total += r.time.cpu;
  std::string text = fmt::format(
      "{}: {:.1f} ms CPU time\n    CPU    runs   CPU us    wall us  GFLOP/s   GB/s\n", program, total * 1e3);
  for (const StepRow& r : rows) {
    const double n = static_cast<double>(r.time.runs), cpu = std::max(r.time.cpu, 1e-9);
    text += fmt::format("{:6.2f}% {:7} {:8.0f} {:10.0f} {:8.1f} {:6.1f}  {}{}\n", 100 * r.time.cpu / total,
                        r.time.runs, r.time.cpu / n * 1e6, r.time.wall / n * 1e6,
                        r.step->flops * n / cpu * 1e-9, r.step->bytes * n / cpu * 1e-9,
                        std::string(static_cast<size_t>(2 * r.depth), ' '), what(*r.step));
  }
  return text;
}

}  // namespace ostro::cpu
