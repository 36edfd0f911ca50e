#include "ostro/cuda/trial/trial.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>

#include "ostro/base/check.h"
#include "ostro/base/log.h"
#include "ostro/cuda/admission/admission.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/numerics/bf16.h"
#include "ostro/numerics/threefry.h"

namespace ostro::cuda {
namespace {

using runtime::Buffer;

constexpr const char* kFamilyNames[kFamilies] = {
    "products",  "attention", "integer products", "reductions", "tensor cores that sum bf16 by N23",
    "warpgroups"};
constexpr FastFamilies kNoneFast = {};
constexpr const char* kAllRight = "all right";
constexpr int64_t kTensorProducts = 256;  // of 16 x 8 steps

// The file that holds this code, with its size and time: another build is another text.
std::string this_build() {
  Dl_info info{};
  const bool known = dladdr(reinterpret_cast<const void*>(&this_build), &info) != 0 &&
                     std::strchr(info.dli_fname, '/') != nullptr;
  const char* const file = known ? info.dli_fname : "/proc/self/exe";
  struct stat facts{};
  if (stat(file, &facts) != 0) return "";
  return fmt::format("{} {} {}.{}", file, facts.st_size, facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec);
}

// Element i of parameter `number`: a float in (-2, 2), of all binary places, or an index below 32.
Buffer drawn(const ir::Shape& shape, size_t number) {
  Buffer out = Buffer::zeros(shape);
  const numerics::Key key{static_cast<uint32_t>(number), 0x7472616cu};
  for (int64_t i = 0; i < shape.count(); ++i) {
    const auto at = static_cast<size_t>(i);
    uint32_t bits = static_cast<uint32_t>(i), other = 0;
    numerics::threefry_rounds(key, bits, other);
    const float x = (static_cast<float>(bits >> 8) * 0x1p-24f - 0.5f) * 4.0f;
    constexpr uint32_t kIndices = 32;
    if (shape.dtype == ir::DType::f32) {
      out.mutable_as<float>()[at] = x;
    } else if (shape.dtype == ir::DType::bf16) {
      out.mutable_as<numerics::Bf16>()[at] = numerics::to_bf16(x);
    } else if (shape.dtype == ir::DType::i32) {
      out.mutable_as<int32_t>()[at] = static_cast<int32_t>(bits % kIndices);
    } else {
      OSTRO_CHECK(shape.dtype == ir::DType::u32, "a trial has no values for {}", shape.str());
      out.mutable_as<uint32_t>()[at] = bits;
    }
  }
  return out;
}

Result<std::vector<Buffer>> results_of(runtime::Engine& engine, const ir::Program& program,
                                       const std::vector<Buffer>& inputs) {
  ASSIGN_OR_RETURN(const auto executable, engine.compile(program));
  ASSIGN_OR_RETURN(auto results, executable->run(inputs));
  return runtime::all_to(std::move(results), runtime::host_memory());
}

void warn(gpu::Device& device, size_t family, const std::string& fault) {
  log_warning(fmt::format(
      "{} ({}): the fast kernels of {} do not run here ({}); the plain ones take their place, with the "
      "same bits as everywhere, in more time. scripts/gpu_check.sh finds out more; please report it",
      device.memory().name(), device.limits().name, kFamilyNames[family], fault));
}

// Where the results differ first; empty: nowhere.
std::string difference(const std::vector<Buffer>& fast, const std::vector<Buffer>& plain) {
  for (size_t r = 0; r < plain.size(); ++r) {
    const auto a = fast[r].bytes(), b = plain[r].bytes();
    for (size_t i = 0; i < b.size(); ++i)
      if (a[i] != b[i]) return fmt::format("result {}, {}, byte {}", r, plain[r].shape().str(), i);
  }
  return "";
}

}  // namespace

Result<FastFamilies> try_fast_kernels(gpu::Device& device) {
  // A trial that found nothing is not made again; one that found something is, with its warning.
  const std::string key = "trial of fast kernels by " + this_build();
  if (device.find_note(key) == kAllRight) return kAllFast;
  ASSIGN_OR_RETURN(const FastFamilies allowed, try_fast_kernels(device, trial_programs()));
  if (allowed == kAllFast) device.keep_note(key, kAllRight);
  return allowed;
}

Result<FastFamilies> try_fast_kernels(gpu::Device& device, const std::vector<TrialProgram>& programs) {
  const auto plain = make_device_engine(device, {.fast = kNoneFast});
  FastFamilies allowed = kAllFast;
  constexpr auto kRule = static_cast<size_t>(Fast::kTensorRule);
  if (device.limits().tensor_rule) {
    ASSIGN_OR_RETURN(const BitsCompared steps, compare_tensor_rule(device, kTensorProducts, 1));
    allowed[kRule] = steps.differ == 0;
    if (steps.differ > 0)
      warn(device, kRule,
           fmt::format("{} of {} steps differ from the definition, {}", steps.differ, steps.cases,
                       steps.first));
  }
  for (const auto& [family, program, is_narrow] : programs) {
    const auto number = static_cast<size_t>(family);
    if (!allowed[number] || (family == Fast::kTensorRule && !device.limits().tensor_rule) ||
        (family == Fast::kWarpgroups && !device.limits().warpgroups))
      continue;
    std::vector<Buffer> inputs;
    for (const ir::ValueId v : program.body.params)
      inputs.push_back(drawn(program.body.shape(v), inputs.size()));
    FastFamilies alone = kNoneFast;
    alone[number] = true;
    const auto fast = make_device_engine(device, {.fast = alone, .width = is_narrow ? 1 : 0});
    const auto with_fast = results_of(*fast, program, inputs);
    // A kernel that could not be launched leaves the device as it was; one that failed ends it.
    if (!with_fast.ok() && !device.synchronise().ok())
      return with_fast.error().with_context(
          fmt::format("the trial of the fast kernels of {} ({}; OSTRO_GPU_KERNELS=plain does without them)",
                      kFamilyNames[number], program.name));
    std::string fault = with_fast.ok() ? "" : with_fast.error().message();
    if (with_fast.ok()) {
      ASSIGN_OR_RETURN(const auto with_plain, results_of(*plain, program, inputs));
      const std::string where = difference(*with_fast, with_plain);
      if (!where.empty()) fault = "other bits than the plain ones have: " + where;
    }
    if (fault.empty()) continue;
    allowed[number] = false;
    warn(device, number, fmt::format("{}: {}", program.name, fault));
  }
  return allowed;
}

}  // namespace ostro::cuda
