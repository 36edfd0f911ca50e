#include "ostro/gpu/emulated/host_compiler.h"

#include <fmt/format.h>

#include <filesystem>

#include "ostro/base/object_cache.h"
#include "ostro/base/run_program.h"
#include "ostro/base/sha256.h"

namespace ostro::gpu {
namespace {

namespace fs = std::filesystem;

// As generated kernels of the CPU engine: contraction is off, and a compiler may not assume what N0 forbids.
const std::vector<std::string> kFlags = {"-std=c++17",
                                         "-O1",
                                         "-march=x86-64-v3",
                                         "-ffp-contract=off",
                                         "-fno-math-errno",
                                         "-fno-trapping-math",
                                         "-fno-strict-aliasing",
                                         "-fno-exceptions",
                                         "-fno-rtti",
                                         "-w",
                                         "-fPIC",
                                         "-shared",
                                         "-DOSTRO_EMULATED"};

Result<std::shared_ptr<SharedObject>> load_host_object(const fs::path& path) {
  const Result<void*> handle = open_library(path.string());
  if (!handle.ok())
    return io_error(fmt::format("emulated device text does not load: {}", handle.error().message()));
  return std::make_shared<SharedObject>(*handle);
}

// Beside the file in the cache, or, where that cannot be written, in the folder for temporary files.
Result<PrivateFolder> folder_beside(const fs::path& kept) {
  if (!kept.empty())
    if (Result<PrivateFolder> folder = PrivateFolder::make(kept.parent_path(), kUnfinished); folder.ok())
      return folder;
  return PrivateFolder::make(temporary_dir(), "ostro-");
}

}  // namespace

Result<HostCompiler> HostCompiler::find() {
  HostCompiler found;
  for (const char* name : {"c++", "g++", "clang++"})
    if (Result<std::string> version = run_program({name, "--version"}); version.ok()) {
      found.compiler_ = name;
      found.version_ = std::move(*version);
      return found;
    }
  return unsupported(
      "the emulated device needs a C++ compiler, and none of c++, g++ and clang++ runs; install one of them");
}

Result<std::shared_ptr<SharedObject>> HostCompiler::compile(const std::string& name,
                                                            const std::string& text) const {
  const std::string key = sha256_hex(
      fmt::format("ostro emulated 1\n{}\n{}\n{}\n{}", compiler_, version_, fmt::join(kFlags, " "), text));
  const fs::path cache = default_cache_dir();
  const fs::path kept = cache.empty() ? fs::path() : cache / "kernels" / (key + ".emulated.so");
  if (!kept.empty() && is_sealed(kept))
    if (auto object = load_host_object(kept); object.ok()) return object;
  ASSIGN_OR_RETURN(const PrivateFolder folder, folder_beside(kept));
  const std::string source = folder.path() / "device.cc", made = folder.path() / "device.so";
  RETURN_IF_ERROR(write_text_file(source, text));
  std::vector<std::string> words = {compiler_};
  words.insert(words.end(), kFlags.begin(), kFlags.end());
  words.insert(words.end(), {"-o", made, source});
  if (auto ran = run_program(words); !ran.ok())
    return ran.error().with_context(fmt::format("device text {}", name));
  RETURN_IF_ERROR(seal_object(made));
  ASSIGN_OR_RETURN(auto object, load_host_object(made));
  std::error_code ignored;  // the next process compiles it again
  if (!kept.empty()) fs::rename(made, kept, ignored);
  return object;
}

}  // namespace ostro::gpu
