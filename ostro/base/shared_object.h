// SharedObject, open_library: code that is loaded while the program runs. Any thread may call.
#pragma once

#include <string>

#include "ostro/base/error.h"

namespace ostro {

// Opens a library by its path, or by its name where the loader finds it. It stays open until dlclose.
// Error: kNotFound with what the loader says.
Result<void*> open_library(const std::string& name);

// A library that is open; closed with this object.
class SharedObject {
 public:
  explicit SharedObject(void* handle) : handle_(handle) {}
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;
  // The address of a symbol; null when the library has none of this name.
  void* symbol(const std::string& name) const;

 private:
  void* handle_;
};

}  // namespace ostro
