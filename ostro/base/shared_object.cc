#include "ostro/base/shared_object.h"

#include <dlfcn.h>

namespace ostro {

Result<void*> open_library(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* why = dlerror();
  return not_found(why == nullptr ? name : why);
}

SharedObject::~SharedObject() { dlclose(handle_); }

void* SharedObject::symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

}  // namespace ostro
