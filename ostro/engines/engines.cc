#include "ostro/engines/engines.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include "ostro/base/log.h"
#include "ostro/base/object_cache.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/cuda/admission/admission.h"
#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/cuda/trial/trial.h"
#include "ostro/gpu/driver/driver.h"
#include "ostro/gpu/driver/gpu.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/runtime/device_name.h"

namespace ostro::engines {
namespace {

void log_choice(const std::string& text) {
  static std::atomic<bool> told = false;
  if (!told.exchange(true)) log_info("device auto: " + text);
}

// Whether OSTRO_GPU_KERNELS allows fast kernels.
Result<bool> wants_fast_kernels() {
  const std::string text = environment_variable("OSTRO_GPU_KERNELS");
  if (text.empty() || text == "fast") return true;
  if (text == "plain") return false;
  return invalid_argument(fmt::format("OSTRO_GPU_KERNELS is \"{}\"; use fast (the default) or plain", text));
}

struct AdmittedGpu {
  gpu::Device* device = nullptr;
  cuda::FastFamilies fast = {};
};

// A GPU is admitted once in a process.
Result<AdmittedGpu> admitted_gpu(int number) {
  static std::mutex mutex;
  static auto* const admitted = new std::map<int, AdmittedGpu>();
  ASSIGN_OR_RETURN(gpu::Device* const device, gpu::open_gpu(number));
  const std::lock_guard lock(mutex);
  if (const auto found = admitted->find(number); found != admitted->end()) return found->second;
  RETURN_IF_ERROR(cuda::admit(*device));
  AdmittedGpu gpu{.device = device};
  ASSIGN_OR_RETURN(const bool fast, wants_fast_kernels());
  if (fast) {
    ASSIGN_OR_RETURN(gpu.fast, cuda::try_fast_kernels(*device));
  }
  return admitted->emplace(number, gpu).first->second;
}

// The first GPU that can be used; -1: none.
int first_gpu() {
  const auto driver = gpu::Driver::open();
  std::string why = driver.ok() ? "" : driver.error().message();
  for (size_t i = 0; driver.ok() && i < (*driver)->gpus().size(); ++i) {
    const auto gpu = admitted_gpu(static_cast<int>(i));
    if (gpu.ok()) {
      log_choice(fmt::format("cuda:{} ({})", i, gpu->device->limits().name));
      return static_cast<int>(i);
    }
    if (why.empty()) why = gpu.error().message();
  }
  log_choice(fmt::format("the processors ({})", why));
  return -1;
}

}  // namespace

Result<Wish> wish_from_environment() {
  const char* variable = std::getenv("OSTRO_EXECUTOR");
  const std::string_view name = variable == nullptr ? "" : variable;
  if (name.empty() || name == "compiled") return Wish{.kind = Wish::Kind::kCompiled};
  if (name == "interpreter") return Wish{.kind = Wish::Kind::kInterpreter};
  if (name == "cuda_emulated") return Wish{.kind = Wish::Kind::kCudaEmulated};
  return invalid_argument(fmt::format(
      "OSTRO_EXECUTOR is \"{}\"; use compiled (the default), interpreter or cuda_emulated", name));
}

Result<Wish> on_device(Wish wish, const std::string& device) {
  using Kind = runtime::DeviceName::Kind;
  ASSIGN_OR_RETURN(const runtime::DeviceName name, runtime::parse_device("device", device));
  if (name.kind == Kind::kCpu) return wish;
  if (wish.kind != Wish::Kind::kCompiled)
    return invalid_argument(fmt::format(
        "OSTRO_EXECUTOR names another engine than that of device {}: unset it, or use device cpu", device));
  const int gpu = name.kind == Kind::kCuda ? name.ordinal : first_gpu();
  if (gpu < 0) return wish;
  wish.kind = Wish::Kind::kCuda;
  wish.gpu = gpu;
  return wish;
}

Result<std::unique_ptr<runtime::Engine>> make(const Wish& wish) {
  if (wish.kind == Wish::Kind::kInterpreter) return interp::make_interpreter();
  if (wish.kind == Wish::Kind::kCudaEmulated) {
    ASSIGN_OR_RETURN(gpu::Device* const device, gpu::emulated_device());
    ASSIGN_OR_RETURN(const bool fast, wants_fast_kernels());
    return cuda::make_device_engine(*device, {.fast = fast ? cuda::kAllFast : cuda::FastFamilies{}});
  }
  if (wish.kind == Wish::Kind::kCuda) {
    ASSIGN_OR_RETURN(const AdmittedGpu gpu, admitted_gpu(wish.gpu));
    return cuda::make_device_engine(*gpu.device, {.fast = gpu.fast});
  }
  return cpu::make_cpu_engine({.generated_code = wish.generated_code});
}

}  // namespace ostro::engines
