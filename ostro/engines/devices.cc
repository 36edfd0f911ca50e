#include "ostro/engines/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/log.h"
#include "ostro/base/machine.h"
#include "ostro/gpu/driver/driver.h"
#include "ostro/gpu/driver/gpu.h"
#include "ostro/gpu/driver/nvrtc.h"
#include "ostro/machine/isa.h"
#include "ostro/products/choose_isa.h"
#include "ostro/runtime/device_name.h"

namespace ostro::engines {
namespace {

CpuDevice find_cpu() {
  CpuDevice cpu{
      .name = processor_name(), .memory_bytes = total_memory(), .free_bytes = available_memory().bytes};
  for (const machine::Isa isa : machine::available_isas())
    cpu.instruction_sets.emplace_back(machine::isa_name(isa));
  if (const auto isa = kernels::choose_isa(); isa.ok()) cpu.used = machine::isa_name(*isa);
  if (const auto threads = default_threads(); threads.ok()) cpu.threads = *threads;
  return cpu;
}

GpuDevice describe(const gpu::Driver& driver, const gpu::GpuFacts& facts) {
  GpuDevice gpu{.device = fmt::format("cuda:{}", facts.ordinal),
                .name = facts.name,
                .compute_capability = gpu::capability_text(facts.compute_capability),
                .multiprocessors = facts.multiprocessors,
                .memory_bytes = facts.memory_bytes};
  if (const Status supported = gpu::check_capability(facts); !supported.ok()) {
    gpu.missing = supported.error().message();
    return gpu;
  }
  if (const auto free = driver.free_memory(facts.ordinal); free.ok())
    gpu.free_bytes = *free;
  else
    gpu.missing = free.error().message();
  if (const auto nvrtc = gpu::Nvrtc::open(driver.path(), driver.cuda_version(), facts.compute_capability);
      !nvrtc.ok() && gpu.missing.empty())
    gpu.missing = nvrtc.error().message();
  return gpu;
}

// The GPUs of which nothing says yet that they cannot be used. Error: the reason why there is none.
Result<std::vector<std::string>> usable_gpus() {
  ASSIGN_OR_RETURN(const gpu::Driver* const driver, gpu::Driver::open());
  std::vector<std::string> usable;
  Status none;
  for (const gpu::GpuFacts& facts : driver->gpus()) {
    Status fits = gpu::check_capability(facts);
    if (fits.ok())
      if (const auto nvrtc =
              gpu::Nvrtc::open(driver->path(), driver->cuda_version(), facts.compute_capability);
          !nvrtc.ok())
        fits = nvrtc.error();
    if (fits.ok()) usable.push_back(fmt::format("cuda:{}", facts.ordinal));
    if (!fits.ok() && none.ok()) none = fits;
  }
  if (usable.empty()) RETURN_IF_ERROR(none);
  return usable;
}

}  // namespace

Devices find_devices() {
  Devices out{.cpu = find_cpu()};
  int cuda_version = 0;
  const auto driver = gpu::Driver::open();
  if (driver.ok()) {
    out.driver_path = (*driver)->path();
    out.driver_version = (*driver)->version();
    cuda_version = (*driver)->cuda_version();
    out.cuda_version = gpu::cuda_text(cuda_version);
    for (const gpu::GpuFacts& facts : (*driver)->gpus()) out.gpus.push_back(describe(**driver, facts));
  } else {
    out.missing.push_back(driver.error().message());
  }
  if (const auto nvrtc = gpu::Nvrtc::open(out.driver_path, cuda_version, 0); nvrtc.ok()) {
    out.nvrtc_path = (*nvrtc)->path();
    out.nvrtc_version = gpu::cuda_text((*nvrtc)->version());
  } else {
    out.missing.push_back(nvrtc.error().message());
  }
  return out;
}

Result<std::vector<WorkerDevice>> devices_of_workers(const std::vector<std::string>& names) {
  std::vector<WorkerDevice> out;
  size_t turn = 0;
  for (const std::string& name : names) {
    RETURN_IF_ERROR(runtime::parse_device("the device of a worker", name));
    out.push_back({.device = name});
    if (name != "cuda" && name != "auto") continue;
    const auto gpus = usable_gpus();
    if (gpus.ok()) {
      out.back().device = (*gpus)[turn++ % gpus->size()];
    } else if (name == "auto") {
      out.back().device = "cpu";
      if (out.size() == 1) log_info(fmt::format("device auto: the processors ({})", gpus.error().message()));
    } else {
      return gpus.error();
    }
  }
  for (WorkerDevice& worker : out)
    worker.sharers = std::count_if(out.begin(), out.end(),
                                   [&](const WorkerDevice& w) { return w.device == worker.device; });
  return out;
}

Result<std::vector<cuda::BitsCompared>> check_device(const std::string& device, int64_t cases) {
  ASSIGN_OR_RETURN(const runtime::DeviceName name, runtime::parse_device("--check", device));
  if (name.kind != runtime::DeviceName::Kind::kCuda)
    return invalid_argument(fmt::format("--check {}: name a GPU, cuda or cuda:N", device));
  ASSIGN_OR_RETURN(const int threads, default_threads());
  ASSIGN_OR_RETURN(gpu::Device* const gpu, gpu::open_gpu(name.ordinal));
  ASSIGN_OR_RETURN(std::vector<cuda::BitsCompared> rows, cuda::compare_bits(*gpu, cases, threads));
  if (!gpu->limits().tensor_rule) return rows;
  const int64_t products = std::clamp<int64_t>(cases / cuda::kProductBits, 1, int64_t{1} << 20);
  ASSIGN_OR_RETURN(cuda::BitsCompared steps, cuda::compare_tensor_rule(*gpu, products, threads));
  rows.push_back(std::move(steps));
  return rows;
}

}  // namespace ostro::engines
