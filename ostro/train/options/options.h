// TrainerOptions, NumericsOptions, ChainOptions: the `trainer:`, `numerics:` and `chain:` sections of a
// configuration. TrainConfig (config.h) reads and checks them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"
#include "ostro/train/options/mesh.h"

namespace ostro::train {

// The type in which matrix products are computed. kInt8: integers for linear layers and the head (numerics.md
// N20), bf16 for everything else. kBf16Tc16: bf16, with the products of linear layers and the head summed by
// the rule of tensor cores (N23).
enum class Compute { kF32, kBf16, kInt8, kBf16Tc16 };

// What trainer.mp says. A type alone converts to it.
struct MixedPrecision {
  MixedPrecision(Compute type, bool attention = false)
      : compute(type), integer_attention(attention) {}  // NOLINT

  Compute compute;
  bool integer_attention;  // products of attention are of integers (numerics.md N21)
  bool operator==(const MixedPrecision&) const = default;
};

// Reads trainer.mp: "p=f32,c=bfloat16", "p=f32,c=int8,a=int8" or a single type ("bf16"). Error:
// kInvalidArgument for anything else, also for another type of the parameters or of the head's output than
// f32.
Result<MixedPrecision> parse_precision(const std::string& text);
// The shortest text for it: "f32", "bf16", "int8", "bf16_tc16", or "c=int8,a=int8" and the like.
std::string precision_word(const MixedPrecision& precision);
// All that there are.
std::vector<MixedPrecision> all_precisions();

// Checkpoints at multiples of `every` are permanent up to step `until` (null: to the end of the run).
struct KeepOptions {
  int64_t every = 1000;
  std::optional<int64_t> until;
  void visit_options(config::OptionTable& table);
};

struct CheckpointerOptions {
  std::optional<config::Duration> save_interval = config::Duration{15 * 60};  // null: no checkpoints by time
  std::vector<KeepOptions> keep = {KeepOptions{}};

  void visit_options(config::OptionTable& table);
  // Returns true when the checkpoint after `step` steps is permanent. The first policy whose `until` is not
  // before `step` decides. The last checkpoint of a run is always permanent; the trainer sees to that, not
  // this function.
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
struct WandbTrackerOptions {  // Weights & Biases, by its Python package
  static constexpr const char* kType = "wandb";
  std::string project = "ostro";
  std::optional<std::string> entity;  // a user or team; null: the one that is logged in
  std::optional<std::string> mode;    // "online" or "offline"; null: as WANDB_MODE says
  void visit_options(config::OptionTable& table);
};
using TrackerOptions = std::variant<JsonTrackerOptions, TensorboardTrackerOptions, WandbTrackerOptions>;

struct TrainerOptions {
  std::string id = "run";  // the run directory is log_dir/id
  std::string log_dir = "runs";
  std::optional<std::string> scratch_dir;  // for what this machine wrote of checkpoints in an object store
  int64_t seed = 0;
  std::string mp = "p=f32,c=bfloat16";
  std::string device = "cpu";
  config::Staged<int64_t> train_batch_size{16};
  int64_t num_train_steps = 200;
  std::optional<std::string> initialize_from;
  std::vector<std::string> freeze;
  std::optional<std::vector<std::string>> train_only;
  int64_t steps_per_eval = 100;
  std::optional<int64_t> max_eval_batches;
  CheckpointerOptions checkpointer;
  std::vector<TrackerOptions> tracker = {JsonTrackerOptions{}};
  std::vector<std::string> watch_norms;  // of "gradients", "parameters" (programs/watch.h)
  int64_t watch_interval = 10;           // they are written after steps that it divides
  std::optional<double> worker_price_per_hour;
  // For runs on several processes; run/job/time_limits.h says what null means.
  std::optional<config::Duration> hang_timeout, exchange_timeout, connect_timeout;
  config::Duration link_timeout{60}, stop_timeout{600};
  std::optional<std::string> tls;             // "job": connections between processes are encrypted
  std::optional<std::string> worker_ports;    // FIRST-LAST: at which workers listen for each other
  std::optional<std::string> relay;           // "auto" or "always": workers connect through the coordinator
  std::optional<std::string> metrics_listen;  // HOST:PORT for Prometheus
  // What watches a run (the room monitor): a program that gets alerts, and when there are some.
  std::vector<std::string> alert_command;
  int64_t alert_stall_factor = 20;
  int64_t alert_disk_free = 1'000'000'000;
  // How a process learns that its machine is about to be taken away, and how long it has then.
  std::optional<std::string> notice_file;
  std::vector<std::string> notice_command;
  std::optional<config::Duration> notice_grace;
  double cross_check = 0;    // the share of leaves that two workers compute (fleet/check)
  ShardingOptions sharding;  // its keys stand in the trainer's section

  bool watches(const std::string& norms) const;  // whether watch_norms names them
  void visit_options(config::OptionTable& table);
  Status validate() const;
};

struct NumericsOptions {
  std::optional<int64_t> leaf_examples;
  // true when the user did not set leaf_examples and TrainConfig::resolve() filled it in
  bool leaf_is_default = false;
  config::IntMap leaves;
  config::IntMap cells;
  int64_t slice_partials = 0;  // groups of leaves whose sums are rounded to bf16; 0: none are
  void visit_options(config::OptionTable& table);
};

struct ChainOptions {
  bool leaf_gradients = false;
  void visit_options(config::OptionTable& table);
};

// All batch sizes that are used at `step` or later.
std::vector<int64_t> sizes_from(const config::Staged<int64_t>& batch_sizes, int64_t step);

// The default of numerics.leaf_examples (docs/spec/numerics.md, N8). It is the largest number that divides
// every batch size and keeps a leaf at 4,096 tokens or fewer. It is at least 1, even if one example is
// longer.
int64_t default_leaf_examples(const std::vector<int64_t>& batch_sizes, int64_t seq_len);

}  // namespace ostro::train
