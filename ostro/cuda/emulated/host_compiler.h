// HostCompiler: makes a shared object of device text with the host's C++ compiler, and keeps it by its
// content.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cuda {

// A loaded object; unloaded with the last reference.
class HostObject {
 public:
  explicit HostObject(void* handle) : handle_(handle) {}
  ~HostObject();
  HostObject(const HostObject&) = delete;
  HostObject& operator=(const HostObject&) = delete;
  void* symbol(const std::string& name) const;

 private:
  void* handle_;
};

class HostCompiler {
 public:
  // Error: none of c++, g++ and clang++ runs.
  static Result<HostCompiler> find();
  // Error: what the compiler says, with `name`.
  Result<std::shared_ptr<HostObject>> compile(const std::string& name, const std::string& text) const;

 private:
  std::string compiler_, version_;
};

}  // namespace ostro::cuda
