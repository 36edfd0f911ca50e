#include "ostro/gpu/driver/library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <filesystem>
#include <system_error>

#include "ostro/base/shared_object.h"

namespace ostro::gpu {
namespace {

namespace fs = std::filesystem;

std::string path_of(void* handle, const std::string& name) {
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && *map->l_name != '\0')
    return map->l_name;
  return name;
}

template <typename Function>
Status fill(void* handle, const std::string& path, const char* symbol, Function& slot) {
  slot = reinterpret_cast<Function>(dlsym(handle, symbol));
  if (slot == nullptr) return unsupported(fmt::format("{} has no function {}", path, symbol));
  return Status();
}

// NVRTC opens its part libnvrtc-builtins by name when it compiles, but the loader does not look into the
// folder of a wheel. A library that is open already is found by its name. Where it is missing, NVRTC says so.
void open_builtins(const std::string& nvrtc) {
  std::error_code ignored;
  const fs::path folder = fs::path(nvrtc).parent_path();
  for (fs::directory_iterator i(folder, ignored), end; !ignored && i != end; i.increment(ignored))
    if (i->path().filename().string().starts_with("libnvrtc-builtins.so."))
      (void)dlopen(i->path().c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

#define OSTRO_FILL_SLOT(member, symbol, parameters) \
  RETURN_IF_ERROR(fill(handle, out.path, #symbol, out.slots.member));

Result<Library<CudaSlots>> open_cuda(const std::string& name) {
  ASSIGN_OR_RETURN(void* const handle, ostro::open_library(name));
  Library<CudaSlots> out{path_of(handle, name), {}};
  OSTRO_CUDA_SLOTS(OSTRO_FILL_SLOT)
  return out;
}

Result<Library<NvrtcSlots>> open_nvrtc(const std::string& name) {
  ASSIGN_OR_RETURN(void* const handle, ostro::open_library(name));
  Library<NvrtcSlots> out{path_of(handle, name), {}};
  open_builtins(out.path);
  OSTRO_NVRTC_SLOTS(OSTRO_FILL_SLOT)
  return out;
}

#undef OSTRO_FILL_SLOT

}  // namespace ostro::gpu
