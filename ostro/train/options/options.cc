#include "ostro/train/options/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "ostro/base/net/host_port.h"
#include "ostro/base/text_parts.h"
#include "ostro/io/files/path.h"
#include "ostro/runtime/device_name.h"

namespace ostro::train {

using config::Effect;
using config::option_error;

namespace {

// Whole leaves are compared, so a leaf must be the work of one worker.
Status check_cross_check(double rate, const MeshOptions& mesh) {
  if (!(rate >= 0 && rate <= 1))
    return option_error("trainer.cross_check", fmt::format("{} is no share; use 0 to 1", rate));
  if (rate == 0) return Status();
  if (mesh.exchange == ExchangeSchedule::kLayer)
    return option_error("trainer.cross_check",
                        "compares the gradients of whole leaves, which no worker has with "
                        "trainer.mesh.exchange: layer; use exchange: step, or leave it out");
  for (const auto& [axis, size] : mesh.axes)
    if (size != 1 && std::find(kLeafAxes.begin(), kLeafAxes.end(), axis) == kLeafAxes.end())
      return option_error(
          "trainer.cross_check",
          fmt::format("compares leaves that one worker computes alone, and trainer.mesh.axes has {}: {}; use "
                      "the axes replica and data only, or leave it out",
                      axis, size));
  return Status();
}

Result<Compute> parse_compute(const std::string& name) {
  if (name == "f32" || name == "float32") return Compute::kF32;
  if (name == "bf16" || name == "bfloat16") return Compute::kBf16;
  if (name == "int8") return Compute::kInt8;
  if (name == "bf16_tc16") return Compute::kBf16Tc16;
  return option_error("trainer.mp",
                      fmt::format("unknown type \"{}\"; use f32, bfloat16, int8 or bf16_tc16", name));
}

Status check_at_least(int64_t least, const char* key, int64_t value) {
  if (value >= least) return {};
  return option_error(fmt::format("trainer.{}", key),
                      fmt::format("{} is too small; use {} or more", value, least));
}

}  // namespace

Result<MixedPrecision> parse_precision(const std::string& text) {
  MixedPrecision out(Compute::kF32);
  if (text.find('=') == std::string::npos) {
    ASSIGN_OR_RETURN(out.compute, parse_compute(text));
    return out;
  }
  for (const std::string& part : comma_parts(text)) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const bool is_param = name == "p" || name == "params", is_output = name == "o" || name == "output";
    const bool is_attention = name == "a" || name == "attention";
    if (equals == std::string::npos ||
        !(is_param || is_output || is_attention || name == "c" || name == "compute"))
      return option_error(
          "trainer.mp",
          fmt::format("\"{}\" in \"{}\" is not understood; write p=f32,c=bfloat16", part, text));
    ASSIGN_OR_RETURN(const Compute type, parse_compute(part.substr(equals + 1)));
    if (is_attention && type != Compute::kInt8)
      return option_error("trainer.mp",
                          fmt::format("{} in \"{}\": attention computes in the type of c; write a=int8 for "
                                      "products of integers, else leave it out",
                                      part, text));
    if (type != Compute::kF32 && (is_param || is_output))
      return option_error(
          "trainer.mp", fmt::format("{} in \"{}\": {} always f32; only c (compute) may be bfloat16, int8 or "
                                    "bf16_tc16",
                                    part, text, is_param ? "parameters are" : "the head's result is"));
    if (is_attention)
      out.integer_attention = true;
    else if (!is_param && !is_output)
      out.compute = type;
  }
  return out;
}

std::string precision_word(const MixedPrecision& precision) {
  const char* type = precision.compute == Compute::kF32    ? "f32"
                     : precision.compute == Compute::kBf16 ? "bf16"
                     : precision.compute == Compute::kInt8 ? "int8"
                                                           : "bf16_tc16";
  return precision.integer_attention ? fmt::format("c={},a=int8", type) : type;
}

std::vector<MixedPrecision> all_precisions() {
  std::vector<MixedPrecision> all;
  for (const bool attention : {false, true})
    for (const Compute compute : {Compute::kF32, Compute::kBf16, Compute::kInt8, Compute::kBf16Tc16})
      all.emplace_back(compute, attention);
  return all;
}

void KeepOptions::visit_options(config::OptionTable& t) {
  t.add(&every, "every", Effect::kSchedule, "steps",
        "keep the checkpoints at multiples of this step for good");
  t.add(&until, "until", Effect::kSchedule, "steps", "last step of this policy; null: the end of the run");
}

void CheckpointerOptions::visit_options(config::OptionTable& t) {
  t.add(&save_interval, "save_interval", Effect::kOutput, "",
        "time between temporary checkpoints; one is removed when it is no longer among the two newest of "
        "all checkpoints; null: no temporary checkpoints by the clock")
      .other("1s");
  t.add(&keep, "keep", Effect::kSchedule, "",
        "which checkpoints are permanent, each recorded in the chain; policies in ascending order of until")
      .other("[{every: 7}]");
}

bool CheckpointerOptions::is_kept(int64_t step) const {
  const auto policy = std::find_if(keep.begin(), keep.end(),
                                   [&](const KeepOptions& k) { return !k.until || step <= *k.until; });
  return policy != keep.end() && step > 0 && step % policy->every == 0;
}

void TrainerOptions::visit_options(config::OptionTable& t) {
  t.add(&id, "id", Effect::kOutput, "", "name of the run").other("other");
  t.add(&log_dir, "log_dir", Effect::kOutput, "path",
        "where runs are kept, a folder or s3://bucket/folder; the run directory is log_dir/id")
      .other("other_runs");
  t.add(&scratch_dir, "scratch_dir", Effect::kOutput, "path",
        "with log_dir in an object store: a local folder in which each process keeps what it wrote of the "
        "newest checkpoint, so that a restore on this machine reads from there what has the manifest's hash; "
        "null: none")
      .since_default("null")
      .other("scratch");
  t.add(&seed, "seed", Effect::kBits, "", "seed of initial weights and data order")
      .fixed("initial weights and the order of the data were drawn from it");
  t.add(&mp, "mp", Effect::kBits, "",
        "mixed precision: the type of compute, f32, bfloat16, int8 or bf16_tc16, alone or as c= after p=f32; "
        "parameters (p=) and the head's result (o=) are always f32; with int8 the products of linear layers "
        "and of the head are of integers, with bf16_tc16 those of bfloat16, summed by the rule of Hopper's "
        "tensor cores; embedding, attention and norms are those of bfloat16; with a=int8 behind c= the "
        "products of attention are of integers, too")
      .other("f32");
  t.add(&device, "device", Effect::kPlan, "", runtime::kDeviceHelp).other("auto");
  t.add(&train_batch_size, "train_batch_size", Effect::kBits, "sequences",
        "sequences in a step, or a list of [step, sequences]; leaf_examples must divide each; the learning "
        "rate is not rescaled")
      .other("8");
  t.add(&num_train_steps, "num_train_steps", Effect::kBits, "steps", "length of the run");
  t.add(&initialize_from, "initialize_from", Effect::kBits, "path",
        "a checkpoint, a run whose newest checkpoint is taken, or a Hugging Face directory: its parameters "
        "are the initial ones; null: they are drawn")
      .other("earlier/run")
      .by_content();
  const char* trained = "gradients and the optimizer's arrays are those of the trained parameters";
  t.add(&freeze, "freeze", Effect::kBits, "globs",
        "parameter paths that are not trained (* matches any text); they are held in the type of compute")
      .other("[\"*embedding*\"]")
      .since_default("[]")
      .fixed(trained);
  t.add(&train_only, "train_only", Effect::kBits, "globs",
        "the only parameter paths that are trained; null: all but those of trainer.freeze")
      .other("[\"*mlp*\"]")
      .since_default("null")
      .fixed(trained);
  t.add(&steps_per_eval, "steps_per_eval", Effect::kOutput, "steps",
        "steps between evaluations on held-out text; the last step always has one; 0: only the last step")
      .other("3");
  t.add(&max_eval_batches, "max_eval_batches", Effect::kOutput, "batches",
        "batches of numerics.leaf_examples sequences that an evaluation takes of each component; null: all")
      .other("1");
  t.section(&checkpointer, "checkpointer", "when to save");
  t.add(&tracker, "tracker", Effect::kOutput, "",
        "where metrics go: json (metrics.jsonl), tensorboard (tb/), wandb (by its Python package)")
      .other("[]");
  t.add(&watch_norms, "watch_norms", Effect::kSchedule, "",
        "of what the metrics tell norms, for each parameter of each layer: gradients (of the mean loss, "
        "before "
        "they are clipped), parameters (after the step). The weights stay the same; the run's hash does not, "
        "because the program of a step computes the norms")
      .since_default("[]")
      .other("[gradients, parameters]");
  t.add(&watch_interval, "watch_interval", Effect::kOutput, "steps",
        "norms are written after steps that it divides")
      .other("1");
  t.add(&worker_price_per_hour, "worker_price_per_hour", Effect::kOutput, "dollars",
        "what one worker costs in an hour; then status, log and metrics show dollars per billion tokens; "
        "null: not known")
      .other("1.5");
  t.add(
       &hang_timeout, "hang_timeout", Effect::kOutput, "",
       "a worker of ostro launch that computes, and in which nothing ends for so long, is reported with the "
       "stacks of its threads, and another takes its place; null: 10 times the slowest of its last 32 steps, "
       "at least 2 minutes; an hour before its first")
      .other("90s");
  t.add(
       &exchange_timeout, "exchange_timeout", Effect::kOutput, "",
       "workers of ostro launch begin a step again when no byte moves between two of them for so long, while "
       "one waits for the other; null: 20 times the slowest of the last 32 steps, at least 10 minutes; no "
       "limit before the first")
      .other("20m");
  t.add(&connect_timeout, "connect_timeout", Effect::kOutput, "",
        "how long workers of ostro launch that have all come may take to connect with each other; null: 30 "
        "seconds and 0.1 for each worker")
      .other("1m");
  t.add(
       &link_timeout, "link_timeout", Effect::kOutput, "",
       "a connection between two workers of ostro launch is lost when the other machine acknowledges nothing "
       "for so long; a process that computes acknowledges")
      .other("30s");
  t.add(&stop_timeout, "stop_timeout", Effect::kOutput, "",
        "the grace of a run of ostro launch that is asked to stop: when it has not ended its step and saved "
        "by then, its processes are ended, and the steps since the last checkpoint are lost")
      .other("2m");
  t.add(&tls, "tls", Effect::kOutput, "",
        "job: the processes of ostro launch encrypt all that they send each other (TLS 1.3), and take only "
        "connections that show a certificate of the job, whose authority follows from its secret; null: they "
        "prove the secret to each other and encrypt nothing")
      .since_default("null")
      .other("job");
  t.add(&worker_ports, "worker_ports", Effect::kOutput, "",
        "FIRST-LAST, or one port: each worker of ostro launch listens for the others at the first of them "
        "that "
        "is free on its machine, so that a firewall need let no other through; null: at any free port")
      .since_default("null")
      .other("29500-29999");
  t.add(&relay, "relay", Effect::kOutput, "",
        "workers of ostro launch that do not reach each other connect through the coordinator, which passes "
        "their bytes on. auto: those of which one has auto and that cannot connect directly; always: all; "
        "null: only "
        "those of which the other has auto or always")
      .since_default("null")
      .other("auto");
  t.add(&metrics_listen, "metrics_listen", Effect::kOutput, "",
        "HOST:PORT at which ostro train, or the launcher of workers, answers /metrics in Prometheus' format "
        "while the run goes on, for instance 127.0.0.1:9500; port 0: one that is free. Beyond loopback "
        "requests need a token; null: none")
      .since_default("null")
      .other("127.0.0.1:0");
  t.add(&alert_command, "alert_command", Effect::kOutput, "words",
        "a program and its arguments, which no shell reads: it is run at each alert, which it gets as a line "
        "of JSON on its standard input; []: alerts are in alerts.jsonl and the log only")
      .since_default("[]")
      .other("[\"true\"]");
  t.add(&alert_stall_factor, "alert_stall_factor", Effect::kOutput, "",
        "an alert tells that no step has ended for so many times the median of the last steps, and for at "
        "least a minute; 0: never")
      .since_default("20");
  t.add(&alert_disk_free, "alert_disk_free", Effect::kOutput, "bytes",
        "an alert tells that less than this is free on the disk of the run, or less than two checkpoints "
        "take; 0: never")
      .since_default("1000000000");
  t.add(
       &notice_file, "notice_file", Effect::kOutput, "path",
       "when this file is there, the machine is about to be taken away: ostro train saves and ends, a worker "
       "leaves the run; null: none")
      .since_default("null")
      .other("no/such/notice");
  t.add(&notice_command, "notice_command", Effect::kOutput, "words",
        "a program and its arguments, run every 5 seconds; status 0 says the same as trainer.notice_file; "
        "[]: none")
      .since_default("[]")
      .other("[\"false\"]");
  t.add(&notice_grace, "notice_grace", Effect::kOutput, "",
        "how long a machine stays after SIGTERM or such a notice: a worker that has not left by then ends, "
        "and "
        "ostro train says that it has not saved; --dry_run says whether a save fits into it; null: no limit")
      .since_default("null")
      .other("2m");
  t.add(&cross_check, "cross_check", Effect::kPlan, "share",
        "the share of leaves that two workers compute and compare, and of arrays whose copies they compare; "
        "what they exchange is compared, too. A worker that a majority names leaves. 0: nothing is checked")
      .since_default("0.0")
      .other("0.5");
  sharding.visit_options(t);
}

bool TrainerOptions::watches(const std::string& norms) const {
  return std::find(watch_norms.begin(), watch_norms.end(), norms) != watch_norms.end();
}

void WandbTrackerOptions::visit_options(config::OptionTable& t) {
  t.add(&project, "project", Effect::kOutput, "", "the project that the run belongs to").other("other");
  t.add(&entity, "entity", Effect::kOutput, "", "the user or team; null: the one that is logged in")
      .other("team");
  t.add(&mode, "mode", Effect::kOutput, "",
        "online, or offline: files under RUN/wandb that `wandb sync` sends later; null: as WANDB_MODE says")
      .other("offline");
}

Status TrainerOptions::validate() const {
  config::Mistakes mistakes;
  if (id.empty() || id == "." || id == ".." || id.find('/') != std::string::npos)
    mistakes.add(option_error("trainer.id",
                              fmt::format("\"{}\" cannot name a directory; use a name without slashes", id)));
  if (log_dir.empty()) mistakes.add(option_error("trainer.log_dir", "is empty; name a directory"));
  if (const auto scheme = io::path_scheme(log_dir); !scheme.empty() && scheme != "s3://")
    mistakes.add(option_error(
        "trainer.log_dir",
        fmt::format(
            "{} is no local folder, and no folder of an object store (s3://bucket/runs), where a run can be "
            "written",
            log_dir)));
  if (scratch_dir && scratch_dir->empty())
    mistakes.add(option_error("trainer.scratch_dir", "is empty; name a local folder, or leave it out"));
  if (scratch_dir && !io::path_scheme(*scratch_dir).empty())
    mistakes.add(
        option_error("trainer.scratch_dir",
                     fmt::format("{} is no local folder; name one on a disk of this machine, or leave it out",
                                 *scratch_dir)));
  if (initialize_from && initialize_from->empty())
    mistakes.add(
        option_error("trainer.initialize_from",
                     "is empty; name a checkpoint, a run or a Hugging Face directory, or leave it out"));
  if (seed < 0) mistakes.add(option_error("trainer.seed", fmt::format("{} is negative", seed)));
  if (tls && *tls != "job")
    mistakes.add(option_error("trainer.tls", fmt::format("\"{}\" is neither job nor null", *tls)));
  if (worker_ports)
    if (const auto ports = parse_ports(*worker_ports); !ports.ok())
      mistakes.add(option_error("trainer.worker_ports", ports.error().message()));
  if (relay && *relay != "auto" && *relay != "always")
    mistakes.add(
        option_error("trainer.relay", fmt::format("\"{}\" is neither auto, always nor null", *relay)));
  if (const auto type = parse_precision(mp); !type.ok()) mistakes.add(type.error());
  if (const auto name = runtime::parse_device("trainer.device", device); !name.ok())
    mistakes.add(name.error());
  for (const auto& stage : train_batch_size.stages)
    mistakes.add(check_at_least(1, "train_batch_size", stage.value));
  mistakes.add(check_at_least(1, "num_train_steps", num_train_steps));
  mistakes.add(check_at_least(0, "steps_per_eval", steps_per_eval));
  if (train_only && !freeze.empty())
    mistakes.add(option_error("trainer.train_only",
                              "says what is trained, and trainer.freeze what is not; use one of them"));
  if (max_eval_batches) mistakes.add(check_at_least(1, "max_eval_batches", *max_eval_batches));
  if (checkpointer.save_interval)
    mistakes.add(check_at_least(1, "checkpointer.save_interval", checkpointer.save_interval->seconds));
  for (size_t i = 0; i < checkpointer.keep.size(); ++i) {
    const KeepOptions& keep = checkpointer.keep[i];
    mistakes.add(check_at_least(1, "checkpointer.keep.every", keep.every));
    const bool is_last = i + 1 == checkpointer.keep.size();
    if (!is_last &&
        (!keep.until || (checkpointer.keep[i + 1].until && *checkpointer.keep[i + 1].until <= *keep.until)))
      mistakes.add(option_error(
          "trainer.checkpointer.keep",
          fmt::format("policy {} is never reached; every policy but the last needs an until, ascending",
                      i + 2)));
  }
  if (worker_price_per_hour && !(*worker_price_per_hour >= 0))
    mistakes.add(option_error("trainer.worker_price_per_hour",
                              fmt::format("{} is no price; use 0 or more", *worker_price_per_hour)));
  if (hang_timeout) mistakes.add(check_at_least(1, "hang_timeout", hang_timeout->seconds));
  if (exchange_timeout) mistakes.add(check_at_least(1, "exchange_timeout", exchange_timeout->seconds));
  if (connect_timeout) mistakes.add(check_at_least(1, "connect_timeout", connect_timeout->seconds));
  mistakes.add(check_at_least(1, "link_timeout", link_timeout.seconds));
  mistakes.add(check_at_least(1, "stop_timeout", stop_timeout.seconds));
  mistakes.add(check_at_least(0, "alert_stall_factor", alert_stall_factor));
  mistakes.add(check_at_least(0, "alert_disk_free", alert_disk_free));
  if (notice_file && notice_file->empty())
    mistakes.add(option_error("trainer.notice_file", "is empty; name a file, or leave it out"));
  if (notice_grace) mistakes.add(check_at_least(1, "notice_grace", notice_grace->seconds));
  mistakes.add(check_cross_check(cross_check, sharding.mesh));
  for (const auto& [key, words] :
       {std::pair{"alert_command", &alert_command}, std::pair{"notice_command", &notice_command}})
    if (!words->empty() && words->front().empty())
      mistakes.add(option_error(fmt::format("trainer.{}", key), "begins with an empty word; name a program"));
  for (const std::string& name : watch_norms)
    if (name != "gradients" && name != "parameters")
      mistakes.add(option_error("trainer.watch_norms",
                                fmt::format("\"{}\" is unknown; use gradients or parameters", name)));
  mistakes.add(check_at_least(1, "watch_interval", watch_interval));
  mistakes.add(sharding.validate());
  std::vector<size_t> types;
  for (const TrackerOptions& t : tracker) {
    if (std::find(types.begin(), types.end(), t.index()) != types.end())
      mistakes.add(option_error("trainer.tracker", "lists the same type twice"));
    types.push_back(t.index());
    if (const auto* wandb = std::get_if<WandbTrackerOptions>(&t);
        wandb != nullptr && wandb->mode && *wandb->mode != "online" && *wandb->mode != "offline")
      mistakes.add(option_error("trainer.tracker.mode",
                                fmt::format("\"{}\" is no mode; use online or offline", *wandb->mode)));
  }
  return mistakes.status();
}

void NumericsOptions::visit_options(config::OptionTable& t) {
  t.add(&leaf_examples, "leaf_examples", Effect::kBits, "sequences",
        "sequences in a leaf, the microbatch; must divide the batch; null: the largest divisor of the batch "
        "with at most 4096 tokens")
      .other("1");
  t.add(
       &leaves, "leaves", Effect::kBits, "leaves by axis",
       "into how many parts sums over an axis are cut inside a microbatch, for the largest mesh wanted; axes "
       "of Llama: kv_heads, mlp, vocab, pos")
      .other("{mlp: 2}");
  t.add(&cells, "cells", Effect::kBits, "cells by axis",
        "into how many parts parameters are cut: for checkpoint chunks, ownership and partial sums of the "
        "gradient norm; cuts no other sum")
      .other("{embed: 4}");
  t.add(&slice_partials, "slice_partials", Effect::kBits, "groups of leaves",
        "the number of slices whose sums of gradients are rounded to bf16 before they are joined. Between as "
        "many slices of one size these sums take half of the bytes. 0: nothing is rounded")
      .other("2")
      .since_default("0");
}

void ChainOptions::visit_options(config::OptionTable& t) {
  t.add(&leaf_gradients, "leaf_gradients", Effect::kSchedule, "",
        "record a fingerprint of every leaf's gradients, so that one leaf can be audited alone");
}

std::vector<int64_t> sizes_from(const config::Staged<int64_t>& batch_sizes, int64_t step) {
  std::vector<int64_t> sizes = {batch_sizes.at(step)};
  for (const auto& stage : batch_sizes.stages)
    if (stage.step > step) sizes.push_back(stage.value);
  return sizes;
}

int64_t default_leaf_examples(const std::vector<int64_t>& batch_sizes, int64_t seq_len) {
  constexpr int64_t kMaxTokens = 4096;
  int64_t common = 0;
  for (const int64_t size : batch_sizes) common = std::gcd(common, size);
  for (int64_t n = std::min(common, kMaxTokens / seq_len); n > 1; --n)
    if (common % n == 0) return n;
  return 1;
}

}  // namespace ostro::train
