#include "ostro/gpu/driver/find_nvrtc.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "ostro/base/object_cache.h"
#include "ostro/base/run_program.h"

namespace ostro::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraries[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

class Candidates {
 public:
  void add(const std::string& path) {
    if (std::find(paths_.begin(), paths_.end(), path) == paths_.end()) paths_.push_back(path);
  }
  void add_folder(const fs::path& folder) {
    std::error_code ignored;
    for (const char* name : kLibraries)
      if (fs::exists(folder / name, ignored)) return add((folder / name).string());
  }
  // The folders of NVIDIA's wheels: of CUDA 13, then of CUDA 12.
  void add_packages(const fs::path& packages) {
    for (const char* folder : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) add_folder(packages / folder);
  }
  // The Python packages of an environment or of the system.
  void add_prefix(const fs::path& prefix) {
    std::error_code ignored;
    std::vector<fs::path> pythons;
    for (fs::directory_iterator i(prefix / "lib", ignored), end; !ignored && i != end; i.increment(ignored))
      if (i->path().filename().string().starts_with("python3")) pythons.push_back(i->path());
    std::sort(pythons.begin(), pythons.end());
    for (const fs::path& python : pythons)
      for (const char* packages : {"site-packages", "dist-packages"}) add_packages(python / packages);
  }
  void add_toolkit(const fs::path& toolkit) {
    for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"}) add_folder(toolkit / folder);
  }
  std::vector<std::string> take() { return std::move(paths_); }

 private:
  std::vector<std::string> paths_;
};

// The prefix of the environment whose `python3` comes first on PATH; empty when there is none.
fs::path prefix_of_python() {
  std::istringstream path(environment_variable("PATH"));
  std::error_code ignored;
  for (std::string folder; std::getline(path, folder, ':');)
    if (!folder.empty() && fs::exists(fs::path(folder) / "python3", ignored))
      return fs::path(folder).parent_path();
  return {};
}

}  // namespace

std::vector<std::string> nvrtc_candidates(const std::string& driver_path) {
  Candidates out;
  if (const std::string chosen = environment_variable("OSTRO_NVRTC"); !chosen.empty()) {
    std::error_code ignored;
    if (fs::is_directory(chosen, ignored)) out.add_folder(chosen);
    std::vector<std::string> found = out.take();
    return found.empty() ? std::vector<std::string>{chosen} : found;
  }
  if (driver_path.find('/') != std::string::npos) out.add_folder(fs::path(driver_path).parent_path());
  // The Python packages ostro and nvidia lie side by side: .../ostro/bin/ostro (or
  // .../ostro/lib/libostro_native.so) and .../nvidia.
  if (const auto program = code_path(); program.ok())
    out.add_packages(fs::path(*program).parent_path().parent_path().parent_path());
  for (const std::string& prefix : {environment_variable("VIRTUAL_ENV"), environment_variable("CONDA_PREFIX"),
                                    prefix_of_python().string()})
    if (!prefix.empty()) out.add_prefix(prefix);
  if (const std::string home = environment_variable("HOME"); !home.empty())
    out.add_prefix(fs::path(home) / ".local");
  for (const char* prefix : {"/usr/local", "/usr"}) out.add_prefix(prefix);
  for (const std::string& toolkit :
       {environment_variable("CUDA_HOME"), environment_variable("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!toolkit.empty()) out.add_toolkit(toolkit);
  for (const char* name : kLibraries) out.add(name);
  return out.take();
}

std::string nvrtc_command(int version) {
  return version >= 13000 ? "pip install nvidia-cuda-nvrtc" : "pip install nvidia-cuda-nvrtc-cu12";
}

}  // namespace ostro::gpu
