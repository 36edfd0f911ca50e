// Nvrtc: NVIDIA's compiler of device text, opened at run time.
//
// Thread-safe. A library that was opened stays so until the process ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/gpu/driver/abi.h"

namespace ostro::gpu {

// The options that make the bits of floats those of docs/spec/numerics.md; every compilation gets them.
inline constexpr const char* kNumericsOptions[] = {"-ftz=true", "-prec-div=true", "-prec-sqrt=true",
                                                   "-fmad=false"};

class Nvrtc {
 public:
  // Opens the first of the candidates (find_nvrtc.h) whose output a driver for CUDA `cuda_version` (13000
  // is 13.0) runs, and that compiles for `capability` (90 is 9.0; 0: any). Error: kUnsupported, with the
  // libraries that were found, why they do not fit, and the command that installs one that does.
  static Result<std::shared_ptr<const Nvrtc>> open(const std::string& driver_path, int cuda_version,
                                                   int capability);
  // Opens the library of that name or path.
  static Result<std::shared_ptr<const Nvrtc>> open_library(const std::string& name);

  const std::string& path() const { return path_; }
  int version() const { return version_; }  // 13000 is 13.0
  // The compute capabilities that it compiles for, ascending.
  const std::vector<int>& capabilities() const { return capabilities_; }
  // The name of the compiler in keys of caches: its version and the size of its file.
  const std::string& identity() const { return identity_; }

  // The architecture that a GPU of that capability is compiled for: "sm_80"; "sm_90a" with all of Hopper's
  // instructions.
  static std::string architecture(int capability);
  // The options of a compilation for an architecture.
  static std::vector<std::string> options(const std::string& architecture);
  // Compiles text to a cubin, a file that the driver loads. `name` is for messages. `log`, which may be null,
  // gets the messages of the compiler, also when it succeeded. Errors: kInternal, with these messages, when
  // the text is wrong; kDevice for anything else.
  Result<std::string> compile(const std::string& name, const std::string& text,
                              const std::vector<std::string>& options, std::string* log = nullptr) const;

 private:
  NvrtcSlots slots_;
  std::string path_, identity_;
  int version_ = 0;
  std::vector<int> capabilities_;
};

}  // namespace ostro::gpu
