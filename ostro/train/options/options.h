// The `trainer:`, `numerics:` and `chain:` sections.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::train {

enum class FloatType { kF32, kBf16 };

// The type in which products are computed, of "p=f32,c=bfloat16" or one type ("bf16"). Parameters and the
// head's result are f32 always: anything else is an error.
Result<FloatType> parse_precision(const std::string& text);

// Checkpoints at multiples of `every` are permanent, up to step `until` (null: to the end).
struct KeepOptions {
  int64_t every = 1000;
  std::optional<int64_t> until;
  void visit_options(config::OptionTable& table);
};

struct CheckpointerOptions {
  std::optional<config::Duration> save_interval = config::Duration{15 * 60};  // null: never by the clock
  std::vector<KeepOptions> keep = {KeepOptions{}};

  void visit_options(config::OptionTable& table);
  // Whether the checkpoint after `step` steps is a permanent one by the first policy whose `until` is not
  // past (the last step of a run is permanent besides, which is the trainer's business).
  bool is_kept(int64_t step) const;
};

struct JsonTrackerOptions {  // metrics.jsonl
  static constexpr const char* kType = "json";
  void visit_options(config::OptionTable&) {}
};
struct TensorboardTrackerOptions {  // event files under tb/
  static constexpr const char* kType = "tensorboard";
  void visit_options(config::OptionTable&) {}
};
using TrackerOptions = std::variant<JsonTrackerOptions, TensorboardTrackerOptions>;

struct TrainerOptions {
  std::string id = "run";  // the run directory is log_dir/id
  std::string log_dir = "runs";
  int64_t seed = 0;
  std::string mp = "p=f32,c=bfloat16";
  config::Staged<int64_t> train_batch_size{16};
  int64_t num_train_steps = 200;
  int64_t steps_per_eval = 100;
  std::optional<int64_t> max_eval_batches;
  CheckpointerOptions checkpointer;
  std::vector<TrackerOptions> tracker = {JsonTrackerOptions{}};

  void visit_options(config::OptionTable& table);
  Status validate() const;
};

struct NumericsOptions {
  std::optional<int64_t> leaf_examples;
  bool leaf_is_default = false;  // nobody gave leaf_examples: TrainConfig::resolve() did
  config::IntMap leaves;
  config::IntMap cells;
  void visit_options(config::OptionTable& table);
};

struct ChainOptions {
  bool leaf_gradients = false;
  void visit_options(config::OptionTable& table);
};

// The batch sizes from `step` on.
std::vector<int64_t> sizes_from(const config::Staged<int64_t>& batch_sizes, int64_t step);

// The default of numerics.leaf_examples (docs/numerics.md, N8): the largest divisor of every batch size whose
// examples have at most 4,096 tokens together, at least 1.
int64_t default_leaf_examples(const std::vector<int64_t>& batch_sizes, int64_t seq_len);

}  // namespace ostro::train
