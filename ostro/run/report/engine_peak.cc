#include "ostro/run/report/engine_peak.h"

#include <algorithm>

#include "ostro/ir/program/builder.h"
#include "ostro/ir/program/product_rule.h"
#include "ostro/train/programs/mfu.h"

namespace ostro::run {
namespace {

constexpr int64_t kHostSize = 768, kHostSizeOfTensorRule = 384;  // which takes ten times as long, or more
constexpr int64_t kLeastDeviceSize = 256, kMostDeviceSize = 4096;
double flops_of(int64_t size) {
  const auto n = static_cast<double>(size);
  return 2 * n * n * n;
}
constexpr double kLongEnough = 2e-3;  // seconds, beside which the start of a kernel is nothing

}  // namespace

EnginePeak::EnginePeak(runtime::Engine& engine, const nn::Precision& precision) {
  if (!engine.info().is_fast) return;
  constexpr double kFirst = 0.1;
  const bool on_host = &engine.memory() == &runtime::host_memory();
  const int64_t host_size = precision.rule == ProductRule::kTc16 ? kHostSizeOfTensorRule : kHostSize;
  if (!make(engine, precision, on_host ? host_size : kLeastDeviceSize)) return;
  best_ = measured(on_host ? kFirst : 0);
  while (!on_host && best_ > 0 && size_ < kMostDeviceSize && flops_of(size_) < kLongEnough * best_) {
    if (!make(engine, precision, 2 * size_)) break;
    best_ = std::max(best_, measured(0));
  }
  if (on_host) return;
  // Training needs the memory of a device.
  product_.reset();
  factors_.clear();
}

bool EnginePeak::make(runtime::Engine& engine, const nn::Precision& precision, int64_t size) {
  const ir::DType dtype = precision.dtype;
  ir::Attrs attrs{{"over", std::vector<std::string>{"k"}},
                  {"dtype", std::string(ir::dtype_name(ir::DType::f32))}};
  if (precision.rule == ProductRule::kTc16) attrs.set(ir::kProductRule, std::string(ir::kTc16));
  ir::Program p;
  ir::Builder b(p.body);
  const ir::ValueId a = p.body.add_param({dtype, {{"m", size}, {"k", size}}}),
                    w = p.body.add_param({dtype, {{"k", size}, {"n", size}}});
  p.body.results = {b.add(ir::OpKind::dot, {a, w}, attrs)};
  auto executable = engine.compile(p);
  auto factors = runtime::all_to(
      {runtime::Buffer::zeros(p.body.shape(a)), runtime::Buffer::zeros(p.body.shape(w))}, engine.memory());
  if (!executable.ok() || !factors.ok()) return false;
  product_ = std::move(*executable);
  factors_ = std::move(*factors);
  size_ = size;
  return true;
}

double EnginePeak::measured(double seconds) {
  if (product_ == nullptr) return 0;
  std::vector<std::byte> row;
  return train::measure_peak(
      [&] {
        const auto result = product_->run(factors_);
        if (!result.ok()) return 0.0;
        // A device works on after run() has returned; reading waits for it.
        const runtime::Buffer first = result->at(0).rows(0, 1);
        row.resize(static_cast<size_t>(first.shape().bytes()));
        return first.read(row).ok() ? flops_of(size_) : 0.0;
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

double engine_peak(runtime::Engine& engine, const nn::Precision& precision) {
  return EnginePeak(engine, precision).value();
}

}  // namespace ostro::run
