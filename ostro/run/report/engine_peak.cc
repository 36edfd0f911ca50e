#include "ostro/run/report/engine_peak.h"

#include <algorithm>

#include "ostro/ir/program/builder.h"
#include "ostro/train/programs/mfu.h"

namespace ostro::run {
namespace {
constexpr int64_t kProductSize = 768;
}  // namespace

EnginePeak::EnginePeak(runtime::Engine& engine, ir::DType dtype) {
  if (!engine.info().is_fast) return;
  ir::Program p;
  ir::Builder b(p.body);
  const ir::ValueId a = p.body.add_param({dtype, {{"m", kProductSize}, {"k", kProductSize}}}),
                    w = p.body.add_param({dtype, {{"k", kProductSize}, {"n", kProductSize}}});
  p.body.results = {b.dot(a, w, {"k"})};
  auto executable = engine.compile(p);
  if (!executable.ok()) return;
  product_ = std::move(*executable);
  factors_ = {runtime::Buffer::zeros(p.body.shape(a)), runtime::Buffer::zeros(p.body.shape(w))};
  constexpr double kFirst = 0.1;
  best_ = measured(kFirst);
}

double EnginePeak::measured(double seconds) {
  if (product_ == nullptr) return 0;
  return train::measure_peak(
      [&] {
        (void)product_->run(factors_);
        return 2.0 * kProductSize * kProductSize * kProductSize;
      },
      seconds);
}

void EnginePeak::measure_again() {
  constexpr double kAgain = 0.01;
  best_ = std::max(best_, measured(kAgain));
}

void EnginePeak::reached(double flops_per_second) {
  if (best_ > 0) best_ = std::max(best_, flops_per_second);
}

double engine_peak(runtime::Engine& engine, ir::DType dtype) { return EnginePeak(engine, dtype).value(); }

}  // namespace ostro::run
