#include "tests/engine/far_engine.h"

#include "ostro/base/check.h"
#include "tests/engine/far_memory.h"

namespace ostro::test {

using runtime::Buffer;

class FarExecutable final : public runtime::Executable {
 public:
  FarExecutable(FarEngine& engine, std::string name, std::unique_ptr<runtime::Executable> computes)
      : engine_(engine), name_(std::move(name)), computes_(std::move(computes)) {}

  Result<std::vector<Buffer>> run(std::vector<Buffer> inputs, const runtime::RunContext& context) override {
    {
      std::lock_guard lock(engine_.mutex_);
      engine_.runs_.push_back({name_, far_memory().reads()});
    }
    for (const Buffer& b : inputs)
      if (!b.valid()) return invalid_argument(name_ + ": an input is missing");
    ASSIGN_OR_RETURN(inputs, runtime::all_to(std::move(inputs), far_memory()));
    std::vector<Buffer> near;
    for (const Buffer& b : inputs) near.push_back(far_memory().near(b));
    ASSIGN_OR_RETURN(const std::vector<Buffer> made, computes_->run(std::move(near), context));
    std::vector<Buffer> results;
    for (const Buffer& b : made) {
      ASSIGN_OR_RETURN(results.emplace_back(), far_memory().far(b));
    }
    return results;
  }

  runtime::ExecutableInfo info() const override { return computes_->info(); }
  void release() override { computes_->release(); }

 private:
  FarEngine& engine_;
  const std::string name_;
  const std::unique_ptr<runtime::Executable> computes_;
};

FarEngine::FarEngine(std::unique_ptr<runtime::Engine> computes)
    : computes_(std::move(computes)), info_{.name = "far " + computes_->info().name} {
  OSTRO_CHECK(&computes_->memory() == &runtime::host_memory(), "{} is not on the host", info_.name);
}

runtime::Memory& FarEngine::memory() { return far_memory(); }

Result<std::unique_ptr<runtime::Executable>> FarEngine::compile(const ir::Program& program,
                                                                const runtime::CompileOptions& options) {
  ASSIGN_OR_RETURN(auto computes, computes_->compile(program, options));
  return std::unique_ptr<runtime::Executable>(
      std::make_unique<FarExecutable>(*this, program.name, std::move(computes)));
}

std::vector<FarRun> FarEngine::runs() const {
  std::lock_guard lock(mutex_);
  return runs_;
}

}  // namespace ostro::test
