// FarEngine: an engine for tests whose arrays live in FarMemory. Another engine computes, on copies.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ostro/runtime/engine.h"

namespace ostro::test {

// What was run, and how often the host had called FarMemory::read() when it began.
struct FarRun {
  std::string program;
  int64_t reads = 0;
};

// Thread-safe. Must outlive its executables.
class FarEngine final : public runtime::Engine {
 public:
  // Not null, and with the host's memory.
  explicit FarEngine(std::unique_ptr<runtime::Engine> computes);

  const runtime::EngineInfo& info() const override { return info_; }
  runtime::Memory& memory() override;
  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& program,
                                                       const runtime::CompileOptions& options) override;

  // All runs of all its executables so far, in order.
  std::vector<FarRun> runs() const;

 private:
  friend class FarExecutable;

  const std::unique_ptr<runtime::Engine> computes_;
  const runtime::EngineInfo info_;
  mutable std::mutex mutex_;
  std::vector<FarRun> runs_;
};

}  // namespace ostro::test
