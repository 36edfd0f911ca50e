// ostro devices
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/exit_code.h"
#include "ostro/cli/shared/terminal.h"
#include "ostro/engines/devices.h"

namespace ostro::cli {
namespace {

std::string size_text(int64_t bytes) {
  return bytes == 0 ? "an unknown amount" : fmt::format("{:.1f} GB", static_cast<double>(bytes) * 1e-9);
}

std::string devices_text(const engines::Devices& devices) {
  const engines::CpuDevice& cpu = devices.cpu;
  const std::string threads = cpu.threads == 0
                                  ? "OSTRO_THREADS is wrong"
                                  : fmt::format("{} thread{}", cpu.threads, cpu.threads == 1 ? "" : "s");
  std::string text = fmt::format("cpu       {}: {}, {}; {} of {} free\n", cpu.name, threads,
                                 cpu.used.empty() ? "OSTRO_ISA is wrong" : cpu.used,
                                 size_text(cpu.free_bytes), size_text(cpu.memory_bytes));
  text += fmt::format("          instruction sets: {}\n", fmt::join(cpu.instruction_sets, ", "));
  for (const engines::GpuDevice& gpu : devices.gpus) {
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

std::string devices_json(const engines::Devices& devices) {
  using Json = nlohmann::ordered_json;
  const auto known = [](int64_t bytes) { return bytes == 0 ? Json() : Json(bytes); };
  const auto text = [](const std::string& words) { return words.empty() ? Json() : Json(words); };
  const engines::CpuDevice& cpu = devices.cpu;
  Json out;
  out["cpu"] = {{"name", cpu.name},
                {"instruction_sets", cpu.instruction_sets},
                {"instruction_set", text(cpu.used)},
                {"threads", known(cpu.threads)},
                {"memory_bytes", known(cpu.memory_bytes)},
                {"free_bytes", known(cpu.free_bytes)}};
  out["gpus"] = Json::array();
  for (const engines::GpuDevice& gpu : devices.gpus)
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

// Exit code 1 when an operation differs.
int check_device(const std::string& device, int64_t cases) {
  constexpr int64_t kMost = int64_t{1} << 32;
  if (cases < 64 || cases > kMost)
    return report_error(invalid_argument(fmt::format("--cases {}: use 64 to {}", cases, kMost)));
  const auto rows = engines::check_device(device, cases);
  if (!rows.ok()) return report_error(rows.error());
  std::string text;
  bool equal = true;
  for (const auto& row : *rows) {
    text += fmt::format("{:<22} {:>11} cases, {} differ{}{}\n", row.name, row.cases, row.differ,
                        row.first.empty() ? "" : "; ", row.first);
    equal = equal && row.differ == 0;
  }
  if (const Status written = write_stdout(text); !written.ok()) return report_error(written.error());
  return equal ? kExitOk : kExitFailed;
}

}  // namespace

int devices_command(Args args) {
  bool json = false;
  std::optional<std::string> check;
  std::optional<int64_t> cases;
  args.summary(
      "Prints what this machine has to train on: its processors and its GPUs, and what is missing for the "
      "latter, with\n"
      "the command that brings it. Exit code 0, also where there is no GPU.");
  args.option("--check", &check, "DEVICE",
              "instead: compare the arithmetic of this GPU with that of the processors; exit code 1: an "
              "operation differs");
  args.option("--cases", &cases, "N",
              "--check: cases of every operation; 4294967296 are all numbers of an operand");
  args.flag("--json", &json, "print it as JSON; null: not known, or not there");
  if (const auto code = args.parse()) return *code;
  if (check && json)
    return report_error(
        invalid_argument("--json beside --check: the comparison is printed as text; leave out one"));
  if (!check && cases)
    return report_error(invalid_argument("--cases is for --check; name a GPU, as in --check cuda:0"));
  if (check) return check_device(*check, cases.value_or(int64_t{1} << 20));
  const engines::Devices devices = engines::find_devices();
  return exit_after(write_stdout(json ? devices_json(devices) : devices_text(devices)));
}

}  // namespace ostro::cli
