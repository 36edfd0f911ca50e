// KernelCompiler: makes functions of this process from generated C, with the C compiler and a cache of its
// output on disk.
//
// The cache is content-addressed: SHA-256 of source, flags, compiler and its version. Many processes on many
// hosts may share it, or read one that they cannot write (base/object_cache.h). An object contains the hash
// of its bytes and, as a symbol, its key. An object that is damaged or has another key is compiled again.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/base/object_cache.h"
#include "ostro/base/shared_object.h"
#include "ostro/compile/text/dialect.h"
#include "ostro/cpu/plan/runner.h"
#include "ostro/cpu/text/write_kernel.h"
#include "ostro/machine/isa.h"

namespace ostro::cpu {

struct CompiledKernels {
  std::vector<KernelFunction> functions;  // of Module::nests
  std::vector<std::unique_ptr<SharedObject>> objects;
};

// Thread-safe.
class KernelCompiler {
 public:
  // Empty strings mean the defaults of engine.h. Never fails: available() tells whether there is a compiler.
  KernelCompiler(std::string cc, std::string cc_opt, const std::string& cache_dir, machine::Isa isa,
                 const compile::Dialect& dialect = compile::gnu_dialect());

  // True when a compiler runs. Whether its output works is only checked when something has to be compiled, so
  // a start with all kernels in the cache is fast.
  bool available() const { return !version_.empty(); }
  // Why there is none.
  const std::string& problem() const { return problem_; }

  // Loads the kernels from the cache, or compiles them. It compiles in the cache folder. When that fails, it
  // logs a warning and compiles in the folder for temporary files, for this process only. A long list is
  // split into two files that are compiled at once. Error: what failed in both folders, and what to do.
  Result<CompiledKernels> compile(const std::vector<Kernel>& kernels);

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
  // The first call compiles and loads a tiny function there. Returns Place::problem.
  const std::string& problem_of(Place& place) const;
  void tell_not_kept(const std::string& why);

  std::string prelude_;
  std::vector<std::string> cc_;  // the words that start the compiler
  std::string flags_, version_, problem_;
  Place cache_, temporary_;
  std::atomic<bool> told_not_kept_ = false;
};

}  // namespace ostro::cpu
