#include "ostro/cuda/device/kernels.h"

namespace ostro::cuda {

Result<Kernel> Kernels::find(const std::string& file, const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Code>& code = codes_[file];
  if (code == nullptr) {
    ASSIGN_OR_RETURN(code, device_.load(file, text_(file)));
  }
  return code->kernel(kernel);
}

}  // namespace ostro::cuda
