#include "ostro/engines/devices_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace ostro::engines {
namespace {

std::string size_text(int64_t bytes) {
  return bytes == 0 ? "an unknown amount" : fmt::format("{:.1f} GB", static_cast<double>(bytes) * 1e-9);
}

}  // namespace

std::string devices_text(const Devices& devices) {
  const CpuDevice& cpu = devices.cpu;
  const std::string threads = cpu.threads == 0
                                  ? "OSTRO_THREADS is wrong"
                                  : fmt::format("{} thread{}", cpu.threads, cpu.threads == 1 ? "" : "s");
  std::string text = fmt::format("cpu       {}: {}, {}; {} of {} free\n", cpu.name, threads,
                                 cpu.used.empty() ? "OSTRO_ISA is wrong" : cpu.used,
                                 size_text(cpu.free_bytes), size_text(cpu.memory_bytes));
  text += fmt::format("          instruction sets: {}\n", fmt::join(cpu.instruction_sets, ", "));
  for (const GpuDevice& gpu : devices.gpus) {
    text += fmt::format("{:<9} {}: {} of {} free, compute capability {}, {} multiprocessors\n", gpu.device,
                        gpu.name, gpu.free_bytes ? size_text(*gpu.free_bytes) : "?",
                        size_text(gpu.memory_bytes), gpu.compute_capability, gpu.multiprocessors);
    if (!gpu.missing.empty()) text += fmt::format("          cannot be used: {}\n", gpu.missing);
  }
  if (!devices.cuda_version.empty())
    text += fmt::format("driver    {}CUDA {}, {}\n",
                        devices.driver_version.empty() ? "" : devices.driver_version + ", ",
                        devices.cuda_version, devices.driver_path);
  if (!devices.nvrtc_path.empty())
    text += fmt::format("nvrtc     {}, {}\n", devices.nvrtc_version, devices.nvrtc_path);
  for (const std::string& missing : devices.missing) text += fmt::format("missing   {}\n", missing);
  return text;
}

std::string devices_json(const Devices& devices) {
  using Json = nlohmann::ordered_json;
  const auto known = [](int64_t bytes) { return bytes == 0 ? Json() : Json(bytes); };
  const auto text = [](const std::string& words) { return words.empty() ? Json() : Json(words); };
  const CpuDevice& cpu = devices.cpu;
  Json out;
  out["cpu"] = {{"name", cpu.name},
                {"instruction_sets", cpu.instruction_sets},
                {"instruction_set", text(cpu.used)},
                {"threads", known(cpu.threads)},
                {"memory_bytes", known(cpu.memory_bytes)},
                {"free_bytes", known(cpu.free_bytes)}};
  out["gpus"] = Json::array();
  for (const GpuDevice& gpu : devices.gpus)
    out["gpus"].push_back({{"device", gpu.device},
                           {"name", gpu.name},
                           {"compute_capability", gpu.compute_capability},
                           {"multiprocessors", gpu.multiprocessors},
                           {"memory_bytes", gpu.memory_bytes},
                           {"free_bytes", gpu.free_bytes ? Json(*gpu.free_bytes) : Json()},
                           {"missing", text(gpu.missing)}});
  out["driver"] = devices.cuda_version.empty() ? Json()
                                               : Json{{"version", text(devices.driver_version)},
                                                      {"cuda", devices.cuda_version},
                                                      {"path", devices.driver_path}};
  out["nvrtc"] = devices.nvrtc_path.empty()
                     ? Json()
                     : Json{{"version", devices.nvrtc_version}, {"path", devices.nvrtc_path}};
  out["missing"] = devices.missing;
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ostro::engines
