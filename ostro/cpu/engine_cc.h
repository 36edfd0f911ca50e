// Generated C -> functions in this process: the C compiler, and a cache of its output on disk.
//
// The cache is content-addressed (SHA-256 of source, flags, compiler and its version), written to a temporary
// name and renamed, so that many processes may share it; every file carries the hash of its contents and is
// compiled again when that does not fit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/compile/plan.h"
#include "ostro/cpu/isa.h"
#include "ostro/cpu/plan_runner.h"

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
  KernelCompiler(std::string cc, std::string cc_opt, std::string cache_dir, Isa isa);

  bool available() const { return !version_.empty(); }
  // Why there is none.
  const std::string& problem() const { return problem_; }

  // Compiles (or loads from the cache) the kernels; long lists in two files at once. Error: the compiler's.
  Result<CompiledKernels> compile(const std::vector<compile::Kernel>& kernels);

 private:
  Result<std::unique_ptr<SharedObject>> load_or_build(const std::string& source);
  Result<std::string> build(const std::string& source, const std::string& key);  // -> path of the object

  std::string cc_, flags_, version_, problem_;
  std::string cache_dir_;
  bool keep_ = true;  // false: the cache cannot be written; objects live in a temporary folder
};

}  // namespace ostro::cpu
