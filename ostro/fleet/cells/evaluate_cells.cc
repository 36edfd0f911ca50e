#include "ostro/fleet/cells/evaluate_cells.h"

#include <algorithm>

#include "ostro/fleet/exchange/messages.h"
#include "ostro/spmd/run_parts.h"
#include "ostro/train/options/mesh.h"
#include "ostro/train/options/split_beside.h"
#include "ostro/train/step/batches.h"

namespace ostro::fleet {

using runtime::Buffer;
using spmd::Role;

Result<spmd::Partition> CellEvaluator::partition(const WorkerPlan& plan, const ir::Program& program,
                                                 int64_t rank) {
  // Without the losses of tokens, which are not used here.
  ASSIGN_OR_RETURN(const auto at,
                   train::signature_of<train::EvalResults>(program, train::Side::kResults, {}));
  ir::Program sums = program;
  sums.body.results = train::as_list(train::read_fields(at, program.body.results).sums);
  sums.result_names.clear();
  spmd::PartitionOptions options;
  options.sharding = plan.options.sharding;
  options.cells = plan.options.cells;
  options.only = rank;
  options.leaf_axes = train::kLeafAxes;
  options.beside = train::kSplitBeside;
  options.params.assign(sums.body.params.size(), Role::kActivation);
  std::fill_n(options.params.begin(), static_cast<std::ptrdiff_t>(plan.n), Role::kParameter);
  options.results.assign(sums.body.results.size(), Role::kActivation);
  return spmd::partition(sums, options);
}

Result<CellEvaluator> CellEvaluator::create(const WorkerPlan& plan, const ir::Program& program,
                                            int64_t rank) {
  ASSIGN_OR_RETURN(const auto at,
                   train::signature_of<train::EvalResults>(program, train::Side::kResults, {}));
  ASSIGN_OR_RETURN(spmd::Partition parts, partition(plan, program, rank));
  ASSIGN_OR_RETURN(auto compiled, plan.engine->compile(*parts.programs[static_cast<size_t>(rank)]));
  return CellEvaluator(plan, train::places_of(at.sums), std::move(parts), std::move(compiled));
}

Result<std::vector<train::BatchLoss>> CellEvaluator::evaluate(runtime::Collectives& c,
                                                              const std::vector<Buffer>& owned,
                                                              const train::HeldOutText& text) {
  const std::vector<int64_t> peers = plan_->leaf_peers(c.rank());
  const auto count = static_cast<int64_t>(peers.size());
  const int64_t self = std::find(peers.begin(), peers.end(), c.rank()) - peers.begin();
  // In rounds, because the workers gather parameters together. Who has no batch in the last round runs the
  // last one, for the others.
  Bytes mine;
  for (int64_t first = 0; first < text.batches(); first += count) {
    const int64_t i = std::min(first + self, text.batches() - 1);
    ASSIGN_OR_RETURN(const batches::Batch batch, text.batch(i));
    std::vector<Buffer> inputs = owned;
    for (const Buffer& whole : train::to_arrays(batch))
      inputs.push_back(spmd::shard(parts_.mesh, c.rank(), parts_.params[inputs.size()], whole));
    ASSIGN_OR_RETURN(std::vector<Buffer> results, program_->run(std::move(inputs), {&c}));
    ASSIGN_OR_RETURN(const train::BatchLoss loss,
                     train::batch_loss(train::read_fields(at_, std::move(results))));
    append_value(mine, loss);
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received,
                   exchange(c, peers, mine, std::vector<size_t>(peers.size(), mine.size())));
  std::vector<Reader> readers(received.begin(), received.end());
  std::vector<train::BatchLoss> losses;
  for (int64_t i = 0; i < text.batches(); ++i)
    losses.push_back(readers[static_cast<size_t>(i % count)].value<train::BatchLoss>());
  // A device has the memory for the steps that follow.
  if (&plan_->engine->memory() != &runtime::host_memory()) program_->release();
  return losses;
}

}  // namespace ostro::fleet
