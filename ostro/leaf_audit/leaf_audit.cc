#include "ostro/leaf_audit/leaf_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ostro/audit/audit_run.h"
#include "ostro/audit/record/initial.h"
#include "ostro/audit/record/witness.h"
#include "ostro/audit/sampled.h"
#include "ostro/base/machine.h"
#include "ostro/base/merkle.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/leaf_file.h"
#include "ostro/chain/record.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/io/files/path.h"
#include "ostro/leaf_audit/check_proof.h"
#include "ostro/leaf_audit/leaf_proof.h"
#include "ostro/train/programs/mfu.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/fingerprints.h"
#include "ostro/train/step/memory_need.h"
#include "ostro/train/step/run_data.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::leaf_audit {
namespace {

// A damaged proof, or one of another run, says nothing of this run.
Error of_proof(const Error& error) {
  return error.code() == ErrorCode::kCorrupt ? io_error(error.message()) : error;
}

// Panels of products and buffers beside the values of a program, at most.
constexpr int64_t kBeside = int64_t{192} << 20;

// One leaf on its way from the files to the comparison.
class LeafReplay {
 public:
  LeafReplay(io::FileSystem& fs, runtime::Engine& engine, std::string directory, audit::VerifyOptions options,
             const LeafRequest& request, const models::ModelChoices& models, const audit::RecordedRun& run)
      : fs_(fs),
        engine_(engine),
        directory_(std::move(directory)),
        options_(std::move(options)),
        request_(request),
        models_(models),
        run_(run),
        period_(run.period_after(request.step - 1)),
        entry_(std::get<chain::StepEntry>(run.chain.find_step(request.step)->entry)) {}

  // Everything is known before anything is computed: the leaf's place in the tree, its rows, its price.
  Status run(LeafAudit& out) {
    LeafPrice& price = out.price;
    RETURN_IF_ERROR(read_proof(out));
    RETURN_IF_ERROR(find_path(price.leaves));
    RETURN_IF_ERROR(read_rows());
    ASSIGN_OR_RETURN(const int64_t from, state_before());
    price.replayed = request_.step - 1 - from;
    ASSIGN_OR_RETURN(const auto leaf, engine_.compile(period_.programs.leaf, train::leaf_options("none")));
    const runtime::ExecutableInfo info = leaf->info();
    for (const ir::Shape& shape : run_.shapes) price.parameter_bytes += shape.bytes();
    price.working_bytes = info.arena_bytes + info.output_bytes + train::resident_memory().now + kBeside;
    price.flops = info.flops;
    RETURN_IF_ERROR(add_steps_before(from, price));
    price.trained_seconds = trained_seconds();
    if (request_.on_priced) request_.on_priced(price);
    if (request_.only_price) return {};
    RETURN_IF_ERROR(check_room(price));
    const audit::CostMeter meter;
    ASSIGN_OR_RETURN(std::vector<runtime::Buffer> params, parameters(from, out));
    if (!out.findings.empty()) return {};
    ASSIGN_OR_RETURN(chain::LeafRecord replayed, compute(*leaf, std::move(params)));
    out.spent = meter.spent();
    compare(replayed, out);
    out.replayed = std::move(replayed);
    return {};
  }

 private:
  Status read_proof(LeafAudit& out) {
    if (request_.proof.empty()) return {};
    ASSIGN_OR_RETURN(const std::string text, fs_.read_file(request_.proof));
    auto proof = batches::parse_proof(text, request_.proof);
    if (!proof.ok()) return of_proof(proof.error());
    const ProofCheck check = check_proof(*proof, run_);
    if (!check.proof.ok()) return of_proof(check.proof.error()).with_context(request_.proof);
    RETURN_IF_ERROR(check.record);
    if (!proof->batch || proof->batch->step != request_.step)
      return io_error(fmt::format("{}: it has no sequences of step {}", request_.proof, request_.step));
    proof_ = std::move(*proof);
    out.proven_rows = true;
    return {};
  }

  Status find_path(int64_t leaves) {
    auto kept = path_of_leaf(fs_, directory_, entry_, request_.leaf, leaves);
    if (kept.ok()) {
      path_ = std::move(*kept);
    } else if (kept.error().code() != ErrorCode::kNotFound) {
      return kept.error();
    } else if (proof_ && proof_->batch->leaf == request_.leaf) {
      path_ = {proof_->batch->leaves, proof_->batch->leaf_path};
    } else if (!run_.config.chain.leaf_gradients) {
      return not_found(fmt::format(
          "the other leaves of step {} are not known: the run was trained without chain.leaf_gradients, so "
          "no "
          "leaf of it can be checked alone; `ostro verify RUN --from_step {} --to_step {}` replays the step",
          request_.step, request_.step - 1, request_.step));
    } else {
      return not_found(fmt::format(
          "the other leaves of step {} are not known: {} (a run with chain.leaf_gradients keeps them), and "
          "no "
          "proof of this leaf was given (--rows FILE, which `ostro data prove --run RUN --leaf {}:{}` makes)",
          request_.step, kept.error().message(), request_.step, request_.leaf));
    }
    if (path_.leaves == leaves) return {};
    return corrupt(
        fmt::format("step {} has {} leaves, but {} are recorded", request_.step, leaves, path_.leaves));
  }

  // The step after which the replay begins. The parameters alone are enough directly before the leaf.
  Result<int64_t> state_before() const {
    const int64_t before = request_.step - 1;
    const std::string path = io::join_path(io::join_path(directory_, checkpoint::kCheckpointsFolder),
                                           checkpoint::step_directory(before));
    if (run_.chain.find_checkpoint(before) != nullptr && checkpoint::Checkpoint::open(fs_, path).ok())
      return before;
    ASSIGN_OR_RETURN(const std::vector<int64_t> states, audit::states_of(fs_, directory_, run_.chain));
    return *(std::upper_bound(states.begin(), states.end(), before) - 1);
  }

  int64_t leaves_after(int64_t done) const {
    const audit::OpenedPeriod& period = run_.period_after(done);
    return period.config.trainer.train_batch_size.at(done) / train::leaf_rows(period.programs);
  }

  Status add_steps_before(int64_t from, LeafPrice& price) {
    const audit::OpenedPeriod* last = nullptr;
    double flops = 0;  // of a leaf of that period
    for (int64_t done = from; done < request_.step - 1; ++done) {
      const audit::OpenedPeriod& period = run_.period_after(done);
      if (&period != last) {
        last = &period;
        ASSIGN_OR_RETURN(const auto leaf,
                         engine_.estimate(period.programs.leaf, train::leaf_options("none")));
        flops = leaf.flops;
        ASSIGN_OR_RETURN(const train::MemoryNeed need,
                         train::step_need(period.programs, engine_, period.config, leaves_after(done)));
        price.working_bytes = std::max(price.working_bytes, need.peak() - price.parameter_bytes + kBeside);
      }
      price.leaves_before += leaves_after(done);
      price.flops_before += flops * static_cast<double>(leaves_after(done));
    }
    return {};
  }

  // Of the batch only this leaf's rows are there.
  Status read_rows() {
    const int64_t rows = train::leaf_rows(period_.programs), first = request_.leaf * rows;
    if (proof_) {
      const batches::ProvenBatch& has = *proof_->batch;
      if (has.first > first || has.first + static_cast<int64_t>(has.sequences.size()) < first + rows)
        return io_error(fmt::format(
            "{}: it has sequences {} to {} of the step, the leaf needs {} to {}", request_.proof, has.first,
            has.first + static_cast<int64_t>(has.sequences.size()) - 1, first, first + rows - 1));
      ASSIGN_OR_RETURN(const batches::Batch batch, batches::batch_of_proof(*proof_));
      arrays_ = train::rows_of(train::leaf_arrays(period_.config, batch, request_.step - 1), first, rows);
      return {};
    }
    if (run_.chain.genesis().reference)
      return unsupported("preference pairs: one leaf cannot be replayed alone yet; replay the step");
    auto data = train::open_run_data(fs_, directory_, run_.newest(), run_.chain, options_.cache);
    if (!data.ok()) return of_proof(data.error());
    ASSIGN_OR_RETURN(const batches::Loader loader, train::make_loader(period_.config, data->stores));
    const auto batch = loader.batch(request_.step - 1);
    if (!batch.ok()) return of_proof(batch.error());
    if (const std::string found = batches::batch_fingerprint(*batch); found != entry_.batch)
      return corrupt(fmt::format("step {}: batch is {} in the chain, {} in the token store", request_.step,
                                 entry_.batch, found));
    arrays_ = train::rows_of(train::leaf_arrays(period_.config, *batch, request_.step - 1), first, rows);
    return {};
  }

  // Seconds of the steps when the run was trained, for each of their leaves.
  double trained_seconds() const {
    const auto record = chain::read_record(fs_, io::join_path(directory_, chain::kRecordFile));
    if (!record.ok()) return 0;
    double seconds = 0;
    int64_t leaves = 0;
    for (const chain::Session& session : record->sessions) {
      const auto of_steps = session.seconds.find("step");
      if (of_steps == session.seconds.end()) continue;  // it was killed, and did not say
      seconds += of_steps->second;
      for (int64_t done = std::max<int64_t>(session.from_step, 0);
           done < std::min(session.to_step, run_.chain.last_step()); ++done)
        leaves += leaves_after(done);
    }
    return leaves > 0 ? seconds / static_cast<double>(leaves) : 0;
  }

  Status check_room(const LeafPrice& price) const {
    const AvailableMemory room = engine_.memory().available();
    const int64_t need = price.parameter_bytes + price.working_bytes;
    if (room.bytes == 0 || need <= room.bytes) return {};
    return io_error(fmt::format("the leaf needs {} MiB of memory, {} MiB can be had ({})", need >> 20,
                                room.bytes >> 20, room.source));
  }

  // Why more than the leaf is replayed, and of which steps nothing else would be.
  std::string before_leaf_text(int64_t from) const {
    constexpr size_t kShown = 12;
    std::vector<int64_t> alone;
    if (const auto states = audit::states_of(fs_, directory_, run_.chain); states.ok())
      for (const int64_t state : *states)
        if (state < run_.chain.last_step()) alone.push_back(state + 1);
    return fmt::format(
        "the record has no state after step {}, so steps {} to {} have to be replayed before the leaf, with "
        "the token store (leaves of steps {}{} need none)",
        request_.step - 1, from + 1, request_.step - 1,
        fmt::join(std::span(alone).first(std::min(alone.size(), kShown)), ", "),
        alone.size() > kShown ? ", ..." : "");
  }

  // Those after request.step - 1 steps; the moments are read only where steps are replayed.
  Result<std::vector<runtime::Buffer>> parameters(int64_t from, LeafAudit& out) {
    if (from < request_.step - 1) {
      auto opened = audit::Replay::open(fs_, engine_, directory_, options_, models_);
      if (!opened.ok()) return opened.error().with_context(before_leaf_text(from));
      const auto replay = std::move(*opened);
      ASSIGN_OR_RETURN(const audit::VerifyReport report,
                       replay->stretch(request_.step - 1, request_.step - 1));
      if (!report.equal)
        out.findings.push_back(
            {audit::Verdict::kDiffers,
             fmt::format("at step {}, before the leaf: {} is {} in the chain, {} replayed",
                         report.different_step, report.what, report.recorded, report.replayed)});
      return replay->take_params();
    }
    const train::StateArrays arrays = train::parameter_arrays(run_.paths, run_.shapes);
    const chain::GenesisEntry& genesis = run_.chain.genesis();
    if (from == chain::entry_step(run_.chain.links.front().entry)) {
      if (!genesis.initial) {
        ASSIGN_OR_RETURN(train::State state, train::initial_state(run_.periods[0].programs, engine_,
                                                                  run_.periods[0].config.trainer.seed));
        return std::move(state.params);
      }
      ASSIGN_OR_RETURN(train::State state, audit::load_initial(fs_, directory_, genesis, arrays));
      return std::move(state.params);
    }
    const audit::Witness witness(run_.chain, io::join_path(directory_, chain::kChainFile), models_);
    const std::string path = io::join_path(io::join_path(directory_, checkpoint::kCheckpointsFolder),
                                           checkpoint::step_directory(from));
    ASSIGN_OR_RETURN(train::RestoredState restored, train::load_state(fs_, path, arrays, witness.checks()));
    return std::move(restored.state.params);
  }

  Result<chain::LeafRecord> compute(runtime::Executable& leaf, std::vector<runtime::Buffer> params) const {
    ASSIGN_OR_RETURN(params, runtime::all_to(std::move(params), engine_.memory()));
    ASSIGN_OR_RETURN(
        std::vector<runtime::Buffer> list,
        leaf.run(train::as_list(train::LeafParams<runtime::Buffer>{std::move(params), arrays_})));
    const train::Signatures at = train::signatures_of(period_.programs);
    ASSIGN_OR_RETURN(const train::LeafResult result,
                     train::leaf_result(train::read_fields(at.leaf_results, std::move(list))));
    return train::leaf_record(request_.leaf, result, run_.paths);
  }

  void compare(const chain::LeafRecord& replayed, LeafAudit& out) const {
    const auto root =
        merkle_root_of_path(merkle_leaf(chain::leaf_data(replayed)), static_cast<size_t>(request_.leaf),
                            static_cast<size_t>(path_.leaves), path_.path);
    if (root && to_hex(*root) == entry_.leaves) return;
    std::string what = fmt::format("with the loss {} it leads to the root {}, the chain has {}",
                                   replayed.loss, root ? to_hex(*root) : "none", entry_.leaves);
    const auto kept = chain::read_leaves(fs_, io::join_path(directory_, chain::kLeavesFile), request_.step);
    if (kept.ok()) {
      const chain::LeafRecord& recorded = (*kept)[static_cast<size_t>(request_.leaf)];
      what = recorded.loss != replayed.loss
                 ? fmt::format("loss is {} in the record, {} replayed", recorded.loss, replayed.loss)
                 : fmt::format("gradient is {} in the record, {} replayed",
                               recorded.gradient.value_or("none"), replayed.gradient.value_or("none"));
    }
    out.findings.push_back({audit::Verdict::kDiffers,
                            fmt::format("at step {}, leaf {}: {}", request_.step, request_.leaf, what)});
  }

  io::FileSystem& fs_;
  runtime::Engine& engine_;
  const std::string directory_;
  const audit::VerifyOptions options_;
  const LeafRequest& request_;
  const models::ModelChoices& models_;
  const audit::RecordedRun& run_;
  const audit::OpenedPeriod& period_;
  const chain::StepEntry& entry_;
  std::optional<batches::DataProof> proof_;
  LeafPath path_;
  train::BatchArrays arrays_;
};

}  // namespace

Result<LeafAudit> audit_leaf(io::FileSystem& fs, runtime::Engine& engine, const std::string& directory,
                             const audit::VerifyOptions& options, const LeafRequest& request,
                             const models::ModelChoices& models) {
  RETURN_IF_ERROR(chain::check_run_hash(request.run_hash));
  LeafAudit out;
  out.price.step = request.step;
  out.price.leaf = request.leaf;
  const auto run = audit::open_recorded(fs, directory, models, options.stored_programs);
  if (!run.ok()) {
    out.findings.push_back(audit::finding_of(run.error()));
    return out;
  }
  if (auto other = audit::hash_finding(run->chain, request.run_hash, request.hash_from)) {
    out.findings.push_back(std::move(*other));
    return out;
  }
  ASSIGN_OR_RETURN(out.price.leaves, leaves_of_step(*run, directory, request.step, request.leaf));
  LeafReplay replay(fs, engine, directory, options, request, models, *run);
  if (const Status done = replay.run(out); !done.ok()) {
    audit::Finding finding = audit::finding_of(done.error());
    if (finding.verdict == audit::Verdict::kCannotCheck && done.error().code() == ErrorCode::kNotFound)
      finding.verdict = audit::Verdict::kIncomplete;
    out.findings.push_back(std::move(finding));
  }
  if (!run->unproven.empty() && out.replayed)
    out.findings.push_back({audit::Verdict::kCannotCheck, run->unproven});
  audit::sort_worst_first(out.findings);
  return out;
}

}  // namespace ostro::leaf_audit
