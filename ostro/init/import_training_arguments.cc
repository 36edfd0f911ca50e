// import_training_arguments (import_config.h).
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "ostro/config/foreign_keys.h"
#include "ostro/config/options.h"
#include "ostro/init/import_parts.h"

namespace ostro::init {

using config::flow_text;
using config::is_off;
using config::Node;
using config::read_value;
using config::with_type;
namespace {

// Reads keys of the flat file and remembers which were used.
class Arguments {
 public:
  Arguments(const Node& file, Imported& out) : file_(file), out_(out) {}

  // The value of a key; nullptr if it is absent or null. It counts as used.
  const Node* take(const char* key) {
    used_.insert(key);
    const Node* found = file_.find(key);
    return found != nullptr && found->kind != Node::Kind::kNull ? found : nullptr;
  }
  std::string text(const char* key, const std::string& otherwise) {
    const Node* found = take(key);
    return found != nullptr && found->is_scalar() ? found->text : otherwise;
  }
  double number(const char* key, double otherwise) {
    const Node* found = take(key);
    double value = otherwise;
    if (found != nullptr && !read_value(*found, key, &value).ok())
      out_.missing.push_back(fmt::format("{}: expected a number", said(*found, key)));
    return value;
  }
  int64_t integer(const char* key, int64_t otherwise) {
    const Node* found = take(key);
    int64_t value = otherwise;
    if (found != nullptr && !read_value(*found, key, &value).ok())
      out_.missing.push_back(fmt::format("{}: expected an integer", said(*found, key)));
    return value;
  }
  bool on(const char* key) {
    const Node* found = take(key);
    return found != nullptr && !is_off(*found);
  }
  void lacks(const char* key, const std::string& why) {
    const Node* found = file_.find(key);
    out_.missing.push_back(fmt::format("{}: {}", found != nullptr ? said(*found, key) : key, why));
  }
  bool is_used(const std::string& key) const { return used_.contains(key); }

 private:
  const Node& file_;
  Imported& out_;
  std::set<std::string> used_;
};

void put_schedule(Arguments& in, Imported& out) {
  const std::string type = in.text("lr_scheduler_type", "linear");
  const Node* more = in.take("lr_scheduler_kwargs");
  const auto of_more = [&](const char* key) { return more != nullptr ? more->find(key) : nullptr; };
  double least = 0;
  const auto set = [&](const char* schedule) {
    put_path(out.tree, "optimizer.lr_schedule", Node::string(schedule));
  };
  if (type == "linear" || type == "cosine")
    set(type.c_str());
  else if (type == "constant" || type == "constant_with_warmup")
    set("constant");
  else if (type == "inverse_sqrt")
    set("inv_sqrt");
  else if (type == "cosine_with_min_lr" || type == "warmup_stable_decay")
    set(type == "cosine_with_min_lr" ? "cosine" : "linear");
  else
    in.lacks("lr_scheduler_type", "Ostro has constant, cosine, linear and inv_sqrt (optimizer.lr_schedule)");
  if (const Node* ratio = of_more("min_lr_rate")) (void)read_value(*ratio, "min_lr_rate", &least);
  if (const Node* ratio = of_more("min_lr_ratio")) (void)read_value(*ratio, "min_lr_ratio", &least);
  if (const Node* lowest = of_more("min_lr")) {
    double value = 0;
    if (read_value(*lowest, "min_lr", &value).ok()) least = value / in.number("learning_rate", 5e-5);
  }
  if (const Node* decay = of_more("num_decay_steps")) {
    double steps = 0;
    if (read_value(*decay, "num_decay_steps", &steps).ok())
      put_path(out.tree, "optimizer.decay", Node::number(steps));
    else
      out.missing.push_back(
          fmt::format("{}: expected a number", said(*decay, "lr_scheduler_kwargs.num_decay_steps")));
  }
  if (const Node* cycles = of_more("num_cycles"))
    out.missing.push_back(
        fmt::format("{}: see optimizer.cycles", said(*cycles, "lr_scheduler_kwargs.num_cycles")));
  put_path(out.tree, "optimizer.min_lr_ratio", Node::number(least));
  const double steps = in.number("warmup_steps", 0), ratio = in.number("warmup_ratio", 0);
  // One step is written as a fraction here: 1 would be the whole run.
  const auto length = static_cast<double>(std::max<int64_t>(1, in.integer("max_steps", -1)));
  const bool forgets = type == "constant";
  put_path(out.tree, "optimizer.warmup",
           Node::number(forgets      ? 0
                        : steps == 1 ? 1 / length
                        : steps > 0  ? steps
                                     : ratio));
}

void put_optimizer(Arguments& in, Imported& out) {
  const std::string optim = in.text("optim", "adamw_torch");
  std::string type = "adam";
  if (optim.starts_with("adafactor") || in.on("adafactor"))
    type = "adafactor";
  else if (optim.starts_with("sgd"))
    type = "sgd";
  else if (optim.find("lion") != std::string::npos)
    type = "lion";
  else if (optim.starts_with("schedule_free_adamw"))
    type = "schedule_free";
  else if (!optim.starts_with("adamw"))
    in.lacks("optim",
             "Ostro has adam, adafactor, lion, sgd, muon, soap, shampoo and schedule_free (optimizer.type)");
  put_path(out.tree, "optimizer.type", Node::string(type));
  put_path(out.tree, "optimizer.learning_rate", Node::number(in.number("learning_rate", 5e-5)));
  put_path(out.tree, "optimizer.weight_decay", Node::number(in.number("weight_decay", 0)));
  const double clip = in.number("max_grad_norm", 1);
  put_path(out.tree, "optimizer.max_grad_norm", clip > 0 ? Node::number(clip) : Node::null());
  const double beta1 = in.number("adam_beta1", 0.9), beta2 = in.number("adam_beta2", 0.999),
               epsilon = in.number("adam_epsilon", 1e-8);
  if (type == "adam" || type == "lion" || type == "schedule_free") {
    put_path(out.tree, "optimizer.beta1", Node::number(beta1));
    put_path(out.tree, "optimizer.beta2", Node::number(beta2));
    if (type != "lion") put_path(out.tree, "optimizer.epsilon", Node::number(epsilon));
  }
  if (type == "sgd") put_path(out.tree, "optimizer.momentum", Node::number(0));
  put_schedule(in, out);
}

void put_length(Arguments& in, Imported& out) {
  const int64_t steps = in.integer("max_steps", -1);
  const double epochs = in.number("num_train_epochs", 3);
  if (steps > 0)
    put_path(out.tree, "trainer.num_train_steps", Node::integer(steps));
  else
    out.missing.push_back(
        fmt::format("num_train_epochs: {}: a run's length is in steps, and a file does not say how many {} "
                    "epochs are; give "
                    "--trainer.num_train_steps N (ostro train --dry_run says how many epochs N are)",
                    epochs, epochs));
  const int64_t device = in.integer("per_device_train_batch_size", 8),
                together = in.integer("gradient_accumulation_steps", 1);
  put_path(out.tree, "trainer.train_batch_size", Node::integer(device * together));
  out.converted.push_back(fmt::format(
      "per_device_train_batch_size {} x gradient_accumulation_steps {} is trainer.train_batch_size: {}, on "
      "one device; multiply it by the number of devices",
      device, together, device * together));
}

void put_checkpoints(Arguments& in, Imported& out) {
  const std::string directory = in.text("output_dir", "");
  std::string id = in.text("run_name", ""), place = directory;
  while (place.ends_with('/')) place.pop_back();
  const size_t slash = place.rfind('/');
  if (id.empty() && !place.empty()) id = place.substr(slash == std::string::npos ? 0 : slash + 1);
  std::replace(id.begin(), id.end(), '/', '-');
  if (!place.empty())
    put_path(out.tree, "trainer.log_dir",
             Node::string(slash == std::string::npos ? "runs" : place.substr(0, slash)));
  if (!id.empty() && id != "." && id != "..") put_path(out.tree, "trainer.id", Node::string(id));
  const std::string save = in.text("save_strategy", "steps");
  const int64_t every = static_cast<int64_t>(in.number("save_steps", 500));
  if (save == "steps" && every >= 1) {
    Node keep = Node::map();
    keep.put("every", Node::integer(every));
    put_path(out.tree, "trainer.checkpointer.keep", Node::list({keep}));
  } else {
    put_path(out.tree, "trainer.checkpointer.keep", Node::list({}));
  }
  if (const Node* limit = in.take("save_total_limit"))
    out.left_out.push_back(
        fmt::format("{}: trainer.checkpointer.keep says which stay", said(*limit, "save_total_limit")));
  const std::string evaluate = in.text("eval_strategy", in.text("evaluation_strategy", "no"));
  const int64_t eval = static_cast<int64_t>(in.number("eval_steps", in.number("logging_steps", 500)));
  put_path(out.tree, "trainer.steps_per_eval", Node::integer(evaluate == "steps" && eval >= 1 ? eval : 0));
  if (evaluate == "epoch")
    out.left_out.push_back(
        "eval_strategy: epoch: there is an evaluation at the end; see trainer.steps_per_eval");
  const Node* to = in.take("report_to");
  std::vector<Node> trackers;
  const auto track = [&](const char* type) { trackers.push_back(with_type(type, Node::map())); };
  track("json");
  const std::string all = to != nullptr ? flow_text(*to) : "";
  if (all.find("tensorboard") != std::string::npos || all.find("all") != std::string::npos)
    track("tensorboard");
  put_path(out.tree, "trainer.tracker", Node::list(trackers));
  if (to != nullptr) out.converted.push_back(fmt::format("{} is trainer.tracker", said(*to, "report_to")));
  if (all.find("wandb") != std::string::npos)
    out.left_out.push_back("report_to: wandb: name it in trainer.tracker, as {type: wandb, project: NAME}");
}

}  // namespace

// What depends on several keys is put together first; every other key is a row of the table.
Imported import_training_arguments(const Node& file) {
  Imported out;
  Arguments in(file, out);
  put_length(in, out);
  put_optimizer(in, out);
  put_checkpoints(in, out);
  put_path(out.tree, "trainer.seed", Node::integer(in.integer("seed", 42)));
  put_path(out.tree, "trainer.mp", Node::string(in.on("bf16") ? "p=f32,c=bfloat16" : "f32"));
  if (in.on("gradient_checkpointing"))
    put_path(out.tree, "model.gradient_checkpointing", Node::boolean(true));
  const Node *length = in.take("max_seq_length"), *other = in.take("max_length");
  if (length != nullptr || other != nullptr)
    put_path(out.tree, "model.seq_len", length != nullptr ? *length : *other);
  for (const Node& item : file.items) {
    if (in.is_used(item.key) || item.kind == Node::Kind::kNull || item.key.starts_with("_")) continue;
    if (!take_foreign(item, item.key, out))
      out.missing.push_back(fmt::format("{}: no option of this name is known", said(item, item.key)));
  }
  return out;
}

}  // namespace ostro::init
