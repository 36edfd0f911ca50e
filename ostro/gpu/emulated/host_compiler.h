// HostCompiler: compiles device text to a shared object with the host's C++ compiler, and keeps it by its
// content.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "ostro/base/error.h"
#include "ostro/base/shared_object.h"

namespace ostro::gpu {

class HostCompiler {
 public:
  // Finds the compiler. Error: none of c++, g++ and clang++ runs.
  static Result<HostCompiler> find();
  // Compiles and loads the text. Error: the message of the compiler, with `name`.
  Result<std::shared_ptr<SharedObject>> compile(const std::string& name, const std::string& text) const;

 private:
  std::string compiler_, version_;
};

}  // namespace ostro::gpu
