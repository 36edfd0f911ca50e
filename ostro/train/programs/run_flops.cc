#include "ostro/train/programs/run_flops.h"

#include "ostro/batches/order/batch_schedule.h"
#include "ostro/ir/program/op_table.h"

namespace ostro::train {
namespace {

// The operations of the first `steps` steps, as a function of `steps`.
class Count {
 public:
  Count(const CanonicalPrograms& programs, const TrainConfig& config)
      : schedule_(config.trainer.train_batch_size),
        leaf_(program_flops(programs.leaf) / static_cast<double>(*config.numerics.leaf_examples)),
        update_(program_flops(programs.update)) {}

  double of(int64_t steps) const {
    return leaf_ * static_cast<double>(schedule_.first_example(steps)) + update_ * static_cast<double>(steps);
  }

 private:
  batches::BatchSchedule schedule_;
  double leaf_, update_;  // of an example, and of a step
};

}  // namespace

double program_flops(const ir::Program& program) {
  double flops = 0;
  const ir::Block& body = program.body;
  for (const ir::Op& op : body.ops) {
    std::vector<ir::Shape> in, out;
    for (const ir::ValueId v : op.operands) in.push_back(body.shape(v));
    for (const ir::ValueId v : op.results) out.push_back(body.shape(v));
    flops += ir::op_cost(op, in, out).flops;
  }
  return flops;
}

double run_flops(const CanonicalPrograms& programs, const TrainConfig& config, int64_t steps) {
  return Count(programs, config).of(steps);
}

int64_t steps_within(const CanonicalPrograms& programs, const TrainConfig& config, double flops) {
  const Count count(programs, config);
  int64_t fits = 0, too_many = 1;
  while (too_many <= kMostStepsWithin && count.of(too_many) <= flops) fits = too_many, too_many *= 2;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (count.of(middle) <= flops ? fits : too_many) = middle;
  }
  return fits;
}

int64_t tokens_of(const TrainConfig& config, int64_t steps) {
  const int64_t examples = batches::BatchSchedule(config.trainer.train_batch_size).first_example(steps);
  int64_t tokens = 0;
  return __builtin_mul_overflow(examples, config.example_positions(), &tokens) ? INT64_MAX : tokens;
}

}  // namespace ostro::train
