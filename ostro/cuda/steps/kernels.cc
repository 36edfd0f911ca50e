#include "ostro/cuda/steps/kernels.h"

#include "ostro/cuda/text/device_text.h"

namespace ostro::cuda {

Result<gpu::Kernel> Kernels::find(std::string_view file, std::string_view kernel) {
  const std::lock_guard lock(mutex_);
  if (const auto of_file = found_.find(file); of_file != found_.end())
    if (const auto known = of_file->second.find(kernel); known != of_file->second.end()) return known->second;
  std::shared_ptr<const gpu::Code>& code = codes_[std::string(file)];
  if (code == nullptr) {
    ASSIGN_OR_RETURN(code, device_.load(std::string(file), device_file_text(file)));
  }
  ASSIGN_OR_RETURN(const gpu::Kernel made, code->kernel(std::string(kernel)));
  found_[std::string(file)][std::string(kernel)] = made;
  return made;
}

}  // namespace ostro::cuda
