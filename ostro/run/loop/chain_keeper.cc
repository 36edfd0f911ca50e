#include "ostro/run/loop/chain_keeper.h"

#include <utility>

#include "ostro/base/profile.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/chain/version.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"
#include "ostro/train/options/shown_config.h"

namespace ostro::run {

ChainKeeper::ChainKeeper(io::FileSystem& fs, const std::string& run_directory, chain::ChainWriter chain)
    : chain_(std::move(chain)), saver_(fs, io::join_path(run_directory, checkpoint::kCheckpointsFolder)) {}

Status ChainKeeper::append(const chain::StepEntry& entry, std::string measured) {
  measured_ = std::move(measured);
  return chain_.append(entry);
}

Status ChainKeeper::finish_save(train::LiveState& state, bool waits) {
  const TimeScope saving(TimeUse::kCheckpoint);
  phase("checkpoint finish");
  ASSIGN_OR_RETURN(auto saved, state.finish_save(saver_));
  while (waits && state.writes_again()) {
    ASSIGN_OR_RETURN(saved, state.finish_save(saver_));
  }
  if (state.writes_again()) return Status();
  if (const auto step = std::exchange(naming_, std::nullopt); step && saved)
    RETURN_IF_ERROR(chain_.append(chain::CheckpointEntry{*step, saved->name}));
  return Status();
}

// The manifest holds the chain's head at its step: the chain is made durable first, so that it always reaches
// as far as the checkpoints.
Status ChainKeeper::save(train::LiveState& state, const train::TrainConfig& config, Saving how) {
  const TimeScope saving(TimeUse::kCheckpoint);
  RETURN_IF_ERROR(finish_save(state));
  phase("checkpoint snapshot");
  fault_point("checkpoint", state.step(), 0);
  if (leaves_) RETURN_IF_ERROR(leaves_->sync());
  RETURN_IF_ERROR(chain_.sync());
  checkpoint::Info info;
  info.step = state.step();
  info.kind = how == Saving::kNamed ? checkpoint::Kind::kPermanent : checkpoint::Kind::kTemporary;
  info.numerics_version = chain::kNumericsVersion;
  info.config = train::config_to_show(config);
  info.chain_head = chain_.head();
  info.measured = measured_;
  RETURN_IF_ERROR(state.save(info, saver_));
  if (how == Saving::kNamed) {
    naming_ = state.step();
    chain_.expect_checkpoint();
  }
  before_last_ = std::exchange(last_saved_, state.step());
  return Status();
}

std::optional<std::pair<int64_t, double>> ChainKeeper::take_written() {
  const checkpoint::AsyncSaver::Written written = saver_.written();
  const std::optional<int64_t>& step = written.running ? before_last_ : last_saved_;
  if (std::exchange(taken_, written.saves) == written.saves || !step) return std::nullopt;
  return std::pair(*step, written.last_seconds);
}

Status ChainKeeper::save_owed(train::LiveState& state, const train::TrainConfig& config) {
  if (!owed_) return Status();
  measured_ = *std::exchange(owed_, std::nullopt);
  return save(state, config, Saving::kNamed);
}

}  // namespace ostro::run
