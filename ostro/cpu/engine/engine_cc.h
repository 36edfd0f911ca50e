// Generated C -> functions in this process: the C compiler, and a cache of its output on disk.
//
// The cache is content-addressed: SHA-256 of source, flags, compiler and its version. Many processes on many
// hosts may share it, or read one that they cannot write (kernel_files.h). An object carries the hash of its
// bytes and, as a symbol, its key: one that is damaged, or of another program, is compiled again.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/cpu/engine/kernel_files.h"
#include "ostro/cpu/machine/isa.h"
#include "ostro/cpu/plan/plan_runner.h"

namespace ostro::cpu {

// A loaded shared object; unloaded with the last reference.
class SharedObject {
 public:
  explicit SharedObject(void* handle) : handle_(handle) {}
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  void* symbol(const char* name) const;

 private:
  void* handle_;
};

struct CompiledKernels {
  std::vector<KernelFunction> functions;  // of Module::kernels
  std::vector<std::unique_ptr<SharedObject>> objects;
};

// Thread-safe.
class KernelCompiler {
 public:
  // Empty strings: as engine.h says. Never fails: available() tells whether there is a compiler.
  KernelCompiler(std::string cc, std::string cc_opt, const std::string& cache_dir, Isa isa);

  // Whether a compiler runs. What it makes is only tried when something has to be compiled: a start with all
  // kernels in the cache costs nothing.
  bool available() const { return !version_.empty(); }
  // Why there is none.
  const std::string& problem() const { return problem_; }

  // Loads the kernels from the cache, or compiles them: in the cache, or when that fails in the folder of
  // temporary files, for this process alone and with a warning. Long lists in two files at once. Error: what
  // failed in both, and what to do.
  Result<CompiledKernels> compile(const std::vector<compile::Kernel>& kernels);

 private:
  // A folder to compile in.
  struct Place {
    std::filesystem::path folder;  // empty: there is none
    std::string_view prefix;       // of the names of private folders in it
    std::once_flag tried;
    std::string problem;  // why it cannot be used, once tried
  };
  struct Built {
    PrivateFolder folder;  // with the files
    std::unique_ptr<SharedObject> object;
  };

  Result<std::unique_ptr<SharedObject>> load_or_build(const std::string& source);
  Result<Built> build(const Place& place, const std::string& source, const std::string& key) const;
  // Moves the files into the cache; a warning when it cannot.
  void keep(const Built& built, const std::string& key);
  // Compiles and loads a tiny function there, the first time; Place::problem.
  const std::string& problem_of(Place& place) const;
  void tell_not_kept(const std::string& why);

  std::string cc_, flags_, version_, problem_;
  Place cache_, temporary_;
  std::atomic<bool> told_not_kept_ = false;
};

}  // namespace ostro::cpu
