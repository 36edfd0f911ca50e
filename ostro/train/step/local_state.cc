#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/log.h"
#include "ostro/numerics/fingerprint.h"
#include "ostro/train/step/evaluate.h"
#include "ostro/train/step/live_state.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::train {
namespace {

std::array<int64_t, 2> print_of(const runtime::Buffer& b) {
  const ir::Shape& shape = b.shape();
  const int64_t length = shape.axes.empty() ? 1 : shape.axes.back().size;
  const int64_t rows = length > 0 ? shape.count() / length : 0;
  const numerics::Fingerprint print =
      numerics::fingerprint_array(rows, length, ir::dtype_size(shape.dtype), b.bytes());
  return {static_cast<int64_t>(print.lane[0]), static_cast<int64_t>(print.lane[1])};
}

// Damage is a reason to take another checkpoint; a model, a version or a device that does not fit is none.
bool is_damage(const Error& error) {
  return error.code() != ErrorCode::kInvalidArgument && error.code() != ErrorCode::kUnsupported &&
         error.code() != ErrorCode::kDevice;
}

class LocalState final : public LiveState {
 public:
  LocalState(const StateParts& parts, std::unique_ptr<StepRunner> runner, std::optional<HeldOut> held_out)
      : fs_(parts.fs),
        engine_(parts.engine),
        programs_(parts.programs),
        arrays_(state_arrays(parts.programs)),
        boxes_(cell_boxes(parts.config)),
        runner_(std::move(runner)),
        held_out_(std::move(held_out)) {
    if (parts.need) planned_ = parts.need->room();
  }

  int64_t step() const override { return state_.step; }

  Status begin(int64_t seed) override {
    ASSIGN_OR_RETURN(state_, initial_state(programs_, engine_, seed));
    return Status();
  }

  Result<CellsRead> restore(const std::string& path, int64_t step, bool prints) override {
    CellsRead out;
    auto restored = load_state(fs_, path, arrays_, {});
    if (!restored.ok() && !is_damage(restored.error())) return restored.error();
    if (!restored.ok()) {
      out.unfit = restored.error().message();
      return out;
    }
    state_ = std::move(restored->state);
    OSTRO_CHECK(state_.step == step, "{} is of step {}, not {}", path, state_.step, step);
    if (prints)
      for (const runtime::Buffer& b : state_.params) out.prints.push_back(print_of(b));
    return out;
  }

  Status take_over(int64_t step) override {
    return Error(ErrorCode::kInternal,
                 fmt::format("step {}: the state of a single process ends with that process", step));
  }

  Result<StepResult> advance(const BatchArrays& batch, const std::vector<float>& scalars) override {
    return runner_->run(state_, batch, scalars);
  }

  Status save(const checkpoint::Info& info, checkpoint::AsyncSaver& saver) override {
    RETURN_IF_ERROR(runner_->collect(state_, StepRunner::Collect::kAll));
    Status beside;
    if (planned_ && fits_beside(state_, engine_.memory(), *planned_)) {
      auto bring = snapshot_beside(state_, arrays_, boxes_, engine_.memory());
      if (bring.ok()) return saver.start(info, checkpoint::AsyncSaver::Bring(std::move(bring).value()));
      beside = bring.error();
    }
    ASSIGN_OR_RETURN(auto tensors, snapshot(state_, arrays_, boxes_));  // an error if the device has ended
    if (!beside.ok()) {
      planned_.reset();
      log_warning(
          fmt::format("checkpoints are not copied beside steps from here on, which wait for the copy: {}",
                      beside.error().message()));
    }
    return saver.start(info, std::move(tensors));
  }

  Result<HeldOutLoss> evaluate() override {
    const std::vector<size_t> used = evaluated_arrays(arrays_);
    const bool means = std::any_of(used.begin(), used.end(), [&](size_t k) { return k >= arrays_.n; });
    RETURN_IF_ERROR(
        runner_->collect(state_, means ? StepRunner::Collect::kAll : StepRunner::Collect::kParameters));
    std::vector<runtime::Buffer> weights;
    for (const size_t k : used) weights.push_back(array_of(state_, k));
    return held_out_->evaluate(weights);
  }

  runtime::ExecutableInfo leaf_info() const override { return runner_->leaf_info(); }
  runtime::ExecutableInfo update_info() const override { return runner_->update_info(); }

 private:
  io::FileSystem& fs_;
  runtime::Engine& engine_;
  const CanonicalPrograms programs_;
  const StateArrays arrays_;
  const optim::Boxes boxes_;
  std::unique_ptr<StepRunner> runner_;
  std::optional<HeldOut> held_out_;
  State state_;
  // Bytes of a device's memory that the run was planned to take; nothing: no copies are made beside steps.
  std::optional<int64_t> planned_;
};

}  // namespace

Result<std::unique_ptr<LiveState>> make_local_state(const StateParts& parts,
                                                    std::unique_ptr<StepRunner> runner) {
  std::optional<HeldOut> held_out;
  if (parts.held_out) {
    ASSIGN_OR_RETURN(held_out, HeldOut::create(*parts.held_out, held_out_program(parts.config, parts.vocab),
                                               parts.engine));
  }
  return std::unique_ptr<LiveState>(
      std::make_unique<LocalState>(parts, std::move(runner), std::move(held_out)));
}

}  // namespace ostro::train
