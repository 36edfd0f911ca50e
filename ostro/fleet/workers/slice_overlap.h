// SliceOverlap: the exchanges of one step between slices that go on while leaves are computed
// (trainer.mesh.slice_overlap): parameters arrive while the leaf program works on the layers before, and sums
// of gradients leave when the backward pass of the last leaf has made them. The sums and their order are
// those of SliceExchange, so no bit depends on it.
//
// All workers that run different leaves start the same exchanges in the same order, whatever their engines
// tell: parameters of all chunks between slices, then chunk by chunk inside; then the gradients of each chunk
// inside and those of the chunk before it between slices. Errors: those of the collectives and of the engine.
// One thread uses it, in the order of its functions.
#pragma once

#include <deque>
#include <vector>

#include "ostro/fleet/shares/leaf_clock.h"
#include "ostro/fleet/workers/slice_exchange.h"
#include "ostro/runtime/run_watch.h"

namespace ostro::fleet {

// The chunks of a plan: the same in every step.
struct OverlapChunks {
  explicit OverlapChunks(const WorkerPlan& plan);
  Chunks read;  // parameters, in the order in which a leaf reads them
  Chunks made;  // gradients, in the order in which a leaf makes them
};

class SliceOverlap final : private runtime::RunWatch {
 public:
  // All must outlive it. `adder`: for sums that are made while the leaf program runs.
  SliceOverlap(const WorkerPlan& plan, SliceExchange& exchange, const OverlapChunks& chunks,
               GradientAdder& adder, runtime::Collectives& c, int64_t rank, int64_t leaves);

  // Begins to gather the parameters (SliceExchange::gather).
  Status start(const CellBuffers& owned, const CellBuffers& copies);
  // The parameters as inputs of a leaf's run with watch(); those that have not arrived are not read before.
  const CellBuffers& parameters() const { return parameters_; }
  // For the run of a leaf. `before`: null, or, if it is this worker's last leaf, the sums of those before it.
  // Null for an engine that tells no watch: then all parameters are there.
  runtime::RunWatch* watch(const SubtreeSums* before, train::Subtree leaf);
  // The last leaf has run and given these gradients; of a worker without leaves: nothing. When it returns,
  // all sums are on their way, and it keeps no gradients of that leaf but those that are still sent.
  Status leaves_done(const CellBuffers& gradients);
  // Returns the sums over all leaves of the cells that this worker owns.
  Result<CellBuffers> finish();
  // The seconds so far for which leaves stood still: waiting for others, and joining what they have sent.
  double seconds_aside() const { return seconds_aside_; }

 private:
  void begin(const std::vector<runtime::Buffer>& results) override;
  Status before_read(size_t param, int64_t begin, int64_t end) override;
  Status made(size_t result, int64_t begin, int64_t end) override;
  // Sends all chunks before this number.
  Status give(size_t chunks);

  const WorkerPlan& plan_;
  SliceExchange& exchange_;
  const OverlapChunks& chunks_;
  GradientAdder& adder_;
  runtime::Collectives& c_;
  const int64_t rank_, leaves_;
  std::vector<int64_t> gradient_of_result_;  // -1: another result
  SliceExchange::Gather gather_;
  CellBuffers parameters_;
  // Of the last leaf.
  const SubtreeSums* before_ = nullptr;
  train::Subtree leaf_;
  // Empty: this worker has no leaf. While it refers to the leaf's results, sums and rounded copies of views
  // of them are new arrays: the leaf program may still read the results, or take their fingerprints.
  CellBuffers gradients_;
  ChunkProgress progress_;
  std::deque<SliceExchange::Join> joins_;  // by chunk, those that were begun
  double seconds_aside_ = 0;
};

}  // namespace ostro::fleet
