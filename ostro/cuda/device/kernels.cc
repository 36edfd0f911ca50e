#include "ostro/cuda/device/kernels.h"

#include "ostro/cuda/text/device_text.h"

namespace ostro::cuda {

Result<Kernel> Kernels::find(const std::string& file, const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Code>& code = codes_[file];
  if (code == nullptr) {
    ASSIGN_OR_RETURN(code, device_.load(file, device_file_text(file)));
  }
  return code->kernel(kernel);
}

}  // namespace ostro::cuda
