#include "ostro/gpu/driver/nvrtc.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "ostro/gpu/driver/driver.h"
#include "ostro/gpu/driver/find_nvrtc.h"
#include "ostro/gpu/driver/library.h"

namespace ostro::gpu {
namespace {

constexpr int kOldestNvrtc = 12000;
constexpr size_t kLogShown = 4000;  // characters of the compiler's words in an error

// Why the compiler does not fit; empty when it does.
std::string misfit(const Nvrtc& nvrtc, int cuda_version, int capability) {
  if (nvrtc.version() < kOldestNvrtc) return fmt::format("is older than {}", cuda_text(kOldestNvrtc));
  if (cuda_version != 0 && nvrtc.version() / 1000 > cuda_version / 1000)
    return fmt::format("is too new: the driver runs CUDA {}", cuda_text(cuda_version));
  const std::vector<int>& known = nvrtc.capabilities();
  if (capability != 0 && std::find(known.begin(), known.end(), capability) == known.end())
    return fmt::format("does not compile for compute capability {}", capability_text(capability));
  return {};
}

Status check_nvrtc(int result, const std::string& path, const char* what) {
  if (result == 0) return Status();
  return device_error(
      fmt::format("{}: {} failed (nvrtcResult {}); install it again, or name another with OSTRO_NVRTC", path,
                  what, result));
}

}  // namespace

Result<std::shared_ptr<const Nvrtc>> Nvrtc::open(const std::string& driver_path, int cuda_version,
                                                 int capability) {
  std::string misfits;
  for (const std::string& candidate : nvrtc_candidates(driver_path)) {
    const auto opened = open_library(candidate);
    // A name without a folder is one that the loader was asked for; that it has none is no finding.
    if (!opened.ok() && candidate.find('/') == std::string::npos) continue;
    const std::string why =
        opened.ok() ? misfit(**opened, cuda_version, capability) : opened.error().message();
    if (why.empty()) return opened;
    misfits += opened.ok() ? fmt::format("; {} (NVRTC {}) {}", (*opened)->path(),
                                         cuda_text((*opened)->version()), why)
                           : fmt::format("; {}", why);
  }
  return unsupported(fmt::format(
      "no NVRTC, the compiler of device text, that fits{}; bring one with: {} (or a CUDA toolkit; "
      "OSTRO_NVRTC names a library or its folder)",
      misfits, nvrtc_command(cuda_version)));
}

Result<std::shared_ptr<const Nvrtc>> Nvrtc::open_library(const std::string& name) {
  ASSIGN_OR_RETURN(const Library<NvrtcSlots> library, open_nvrtc(name));
  auto out = std::make_shared<Nvrtc>();
  out->slots_ = library.slots;
  out->path_ = library.path;
  int major = 0, minor = 0, count = 0;
  RETURN_IF_ERROR(check_nvrtc(out->slots_.version(&major, &minor), out->path_, "asking its version"));
  out->version_ = 1000 * major + 10 * minor;
  RETURN_IF_ERROR(
      check_nvrtc(out->slots_.architecture_count(&count), out->path_, "asking its architectures"));
  out->capabilities_.resize(static_cast<size_t>(std::max(0, count)));
  RETURN_IF_ERROR(check_nvrtc(out->slots_.architectures(out->capabilities_.data()), out->path_,
                              "asking its architectures"));
  std::sort(out->capabilities_.begin(), out->capabilities_.end());
  std::error_code unknown;
  const auto bytes = std::filesystem::file_size(out->path_, unknown);
  out->identity_ = fmt::format("nvrtc {} {}", cuda_text(out->version_), unknown ? 0 : bytes);
  return std::shared_ptr<const Nvrtc>(std::move(out));
}

std::string Nvrtc::architecture(int capability) {
  return fmt::format("sm_{}{}", capability, capability == 90 ? "a" : "");
}

std::vector<std::string> Nvrtc::options(const std::string& architecture) {
  std::vector<std::string> out = {"--gpu-architecture=" + architecture, "--std=c++17"};
  out.insert(out.end(), std::begin(kNumericsOptions), std::end(kNumericsOptions));
  return out;
}

Result<std::string> Nvrtc::compile(const std::string& name, const std::string& text,
                                   const std::vector<std::string>& options, std::string* log) const {
  const std::string file = name.ends_with(".cu") ? name : name + ".cu";
  void* program = nullptr;
  RETURN_IF_ERROR(
      check_nvrtc(slots_.create_program(&program, text.c_str(), file.c_str(), 0, nullptr, nullptr), path_,
                  "taking a text"));
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const int compiled = slots_.compile_program(program, static_cast<int>(words.size()), words.data());
  std::string said, code;
  size_t bytes = 0;
  if (slots_.log_size(program, &bytes) == 0 && bytes > 1) {
    said.resize(bytes);
    if (slots_.log(program, said.data()) != 0) said.clear();
    said.resize(std::min(said.size(), said.find('\0')));
  }
  Status taken;
  if (compiled == 0) {
    taken = check_nvrtc(slots_.code_size(program, &bytes), path_, "asking for the code");
    code.resize(taken.ok() ? bytes : 0);
    if (taken.ok()) taken = check_nvrtc(slots_.code(program, code.data()), path_, "taking the code");
  }
  (void)slots_.destroy_program(&program);
  if (log != nullptr) *log = said;
  if (compiled == kCompilationFailed)
    return Error(ErrorCode::kInternal,
                 fmt::format("device text {} does not compile with {} ({}): {}", name, path_,
                             fmt::join(options, " "), said.substr(0, kLogShown)));
  if (compiled != 0 && !said.empty())
    return device_error(fmt::format("{} cannot compile {} ({}, nvrtcResult {}): {}", path_, name,
                                    fmt::join(options, " "), compiled, said.substr(0, kLogShown)));
  RETURN_IF_ERROR(check_nvrtc(compiled, path_, "compiling"));
  RETURN_IF_ERROR(taken);
  return code;
}

}  // namespace ostro::gpu
