// import_levanter (import_config.h).
#include <fmt/core.h>

#include <algorithm>

#include "ostro/config/foreign_keys.h"
#include "ostro/config/options.h"
#include "ostro/config/yaml.h"
#include "ostro/init/import_parts.h"

namespace ostro::init {

using config::find_foreign;
using config::ForeignKey;
using config::join_path;
using config::Node;
using config::parse_yaml;
using config::with_type;
namespace {

struct Default {
  const char *path, *value;
};

// Levanter's defaults that differ from ours.
constexpr Default kDefaults[] = {{"trainer.mp", "f32"},
                                 {"trainer.train_batch_size", "512"},
                                 {"trainer.num_train_steps", "400000"},
                                 {"trainer.steps_per_eval", "1000"},
                                 {"trainer.checkpointer.keep", "[{every: 10000}]"},
                                 {"data.tokenizer", "gpt2"},
                                 {"data.shuffle", "false"}};
constexpr Default kLlama[] = {{"model.seq_len", "2048"},
                              {"model.hidden_dim", "4096"},
                              {"model.intermediate_dim", "11008"},
                              {"model.num_layers", "32"},
                              {"model.num_heads", "32"},
                              {"model.num_kv_heads", "32"},
                              {"model.gradient_checkpointing", "true"}};
constexpr Default kMistral[] = {{"model.seq_len", "8192"},
                                {"model.hidden_dim", "4096"},
                                {"model.intermediate_dim", "14336"},
                                {"model.num_layers", "32"},
                                {"model.num_heads", "32"},
                                {"model.num_kv_heads", "8"},
                                {"model.gradient_checkpointing", "true"}};
constexpr Default kGpt2[] = {{"model.seq_len", "1024"},
                             {"model.hidden_dim", "768"},
                             {"model.num_layers", "12"},
                             {"model.num_heads", "12"},
                             {"model.gradient_checkpointing", "true"}};

Node yaml_value(const char* text) {
  auto tree = parse_yaml(std::string("v: ") + text, "");
  return tree.ok() ? *tree->find("v") : Node::null();
}

template <size_t kCount>
void put_defaults(const Default (&rows)[kCount], Imported& out) {
  for (const Default& row : rows)
    if (!has_path(out.tree, row.path)) put_path(out.tree, row.path, yaml_value(row.value));
}

// "[{start: 0, value: 32}, ...]" and "{start: 0, value: 32}" as [[0, 32], ...].
Node stages_of(const Node& value) {
  const auto stage = [](const Node& item) -> std::optional<Node> {
    const Node *start = item.find("start"), *of = item.find("value");
    if (of == nullptr) return std::nullopt;
    return Node::list({start != nullptr ? *start : Node::integer(0), *of});
  };
  std::vector<Node> stages;
  if (value.kind != Node::Kind::kList) return value;
  for (const Node& item : value.items) {
    const auto one = stage(item);
    if (!one) return value;
    stages.push_back(*one);
  }
  return Node::list(std::move(stages));
}

void put_trackers(const Node& item, Imported& out) {
  std::vector<Node> trackers = {with_type("json", Node::map())};
  const auto add = [&](const Node& one) {
    const Node* type = one.find("type");
    const std::string name = type != nullptr ? type->text : "wandb";
    if (name == "tensorboard")
      trackers.push_back(with_type(name, Node::map()));
    else if (name != "json_logger" && name != "noop")
      out.left_out.push_back(
          fmt::format("{}: metrics are in the run's directory (json); see trainer.tracker for others",
                      said(one, "trainer.tracker")));
  };
  if (item.kind == Node::Kind::kList)
    for (const Node& one : item.items) add(one);
  else
    add(item);
  put_path(out.tree, "trainer.tracker", Node::list(trackers));
}

// Norms in the metrics: `grads` and `params` are ours, too, and what a section without targets means.
void put_watch(const Node& section, Imported& out) {
  std::vector<Node> norms;
  if (section.find("watch_targets") == nullptr)
    norms = {Node::string("gradients"), Node::string("parameters")};
  bool wanted = true;
  const auto add = [&](const Node& target) {
    if (target.text == "grads" || target.text == "params")
      norms.push_back(Node::string(target.text == "grads" ? "gradients" : "parameters"));
    else
      out.left_out.push_back(fmt::format("{}: trainer.watch_norms knows gradients and parameters",
                                         said(target, "trainer.watch.watch_targets")));
  };
  for (const Node& item : section.items) {
    const std::string full = "trainer.watch." + item.key;
    if (item.key == "watch_targets" && item.kind == Node::Kind::kList)
      for (const Node& target : item.items) add(target);
    else if (item.key == "watch_targets")
      add(item);
    else if (item.key == "interval" && config::is_off(item))
      wanted = false;
    else if (item.key == "interval")
      put_path(out.tree, "trainer.watch_interval", item);
    else if (item.key == "include_norms" || item.key == "include_per_parameter_norms")
      wanted = wanted && !config::is_off(item);
    else if (!config::is_off(item) && item.key != "split_scan_layers")
      out.left_out.push_back(fmt::format("{}: norms are written, for each layer", said(item, full)));
  }
  if (wanted) put_path(out.tree, "trainer.watch_norms", Node::list(norms));
}

// One data set: a component, or the keys of `data` itself.
void put_source(const Node& source, const std::string& path, Imported& out) {
  for (const Node& item : source.items) {
    const std::string full = join_path(path, item.key);
    const bool is_null = item.kind == Node::Kind::kNull;
    if ((item.key == "train_urls" || item.key == "validation_urls") && !is_null) {
      put_path(out.tree, full, item);
    } else if (item.key == "format" || item.key == "cache_dir") {
      if (!is_null) put_path(out.tree, full, item);
    } else if (item.key == "text_key" && path != "data") {
      put_path(out.tree, path + ".format.text_key", item);
    } else if (!is_null && !take_foreign(item, full, out)) {
      put_path(out.tree, full, item);
    }
  }
}

bool is_source_key(const std::string& key) {
  for (const char* k : {"id", "name", "stream", "train_urls", "validation_urls", "tags", "format"})
    if (key == k) return true;
  return false;
}

void put_data(const Node& data, Imported& out) {
  const Node* configs = data.find("configs");
  if (configs == nullptr) configs = data.find("components");
  for (const Node& item : data.items) {
    const std::string full = "data." + item.key;
    if (&item == configs) {
      for (const Node& source : item.items) put_source(source, "data.components." + source.key, out);
      if (item.key == "configs")
        out.converted.push_back(
            fmt::format("{}data.configs is data.components", item.where.empty() ? "" : item.where + ": "));
    } else if (item.kind == Node::Kind::kNull) {
      continue;
    } else if (is_source_key(item.key)) {
      Node one = Node::map();
      one.items.push_back(item);
      put_source(one, item.key == "format" ? "data.components.all" : "data", out);
    } else if (item.key == "train_weights" && item.kind == Node::Kind::kList) {
      put_path(out.tree, full, stages_of(item));
    } else if (!take_foreign(item, full, out)) {
      put_path(out.tree, full, item);
    }
  }
  // A data set whose rows have a format is a component.
  Node* ours = out.tree.find("data");
  if (ours == nullptr || !has_path(out.tree, "data.components.all")) return;
  for (const char* key : {"train_urls", "validation_urls"})
    if (Node* urls = ours->find(key)) {
      const Node moved = *urls;
      std::erase_if(ours->items, [&](const Node& item) { return item.key == key; });
      put_path(out.tree, std::string("data.components.all.") + key, moved);
    }
}

void put_section(const Node& section, const std::string& path, Imported& out) {
  for (const Node& item : section.items) {
    const std::string full = join_path(path, item.key);
    if (full == "trainer.tracker") {
      put_trackers(item, out);
    } else if (full == "trainer.watch" && item.kind == Node::Kind::kMap) {
      put_watch(item, out);
    } else if (full == "trainer.train_batch_size") {
      put_path(out.tree, full, stages_of(item));
    } else if (full == "trainer.checkpointer" || full == "trainer.mesh") {
      put_section(item, full, out);
    } else if (full == "trainer.checkpointer.base_path") {
      out.left_out.push_back(
          fmt::format("{}: checkpoints are in trainer.log_dir/trainer.id", said(item, full)));
    } else if (full == "trainer.per_device_parallelism" || full == "trainer.per_device_eval_parallelism") {
      out.left_out.push_back(fmt::format("{}: numerics.leaf_examples is the microbatch", said(item, full)));
    } else if (full == "trainer.ray" || full == "trainer.distributed" ||
               full == "trainer.require_accelerator" || full == "trainer.profiler" ||
               full == "trainer.wandb" || full == "trainer.load_checkpoint_path") {
      const ForeignKey* row = find_foreign(full, item);
      out.left_out.push_back(
          fmt::format("{}: {}", said(item, full), row != nullptr ? row->text : "not needed"));
    } else if (item.kind == Node::Kind::kNull && find_foreign(full, item) != nullptr) {
      continue;
    } else if (!take_foreign(item, full, out)) {
      put_path(out.tree, full, item);
    }
  }
}

// Options of the run beside its sections.
void put_top(const Node& item, Imported& out) {
  if (item.kind == Node::Kind::kNull) return;
  if (item.key == "z_loss_weight") {
    put_path(out.tree, "model.z_loss_weight", item);
    out.converted.push_back(fmt::format("{} is model.z_loss_weight", said(item, item.key)));
  } else if (item.key == "hf_save_path" || item.key == "hf_upload" || item.key == "eval_harness") {
    const ForeignKey* row = find_foreign(item.key, Node::string("given"));
    out.left_out.push_back(fmt::format("{}: {}", said(item, item.key), row->text));
  } else if (!take_foreign(item, item.key, out)) {
    put_path(out.tree, item.key, item);
  }
}

}  // namespace

Imported import_levanter(const Node& file) {
  Imported out;
  for (const Node& item : file.items) {
    if (item.kind != Node::Kind::kMap)
      put_top(item, out);
    else if (item.key == "data")
      put_data(item, out);
    else if (item.key == "trainer" || item.key == "model" || item.key == "optimizer")
      put_section(item, item.key, out);
    else
      put_top(item, out);
  }
  const Node* model = out.tree.find("model");
  const Node* type = model != nullptr ? model->find("type") : nullptr;
  const std::string name = type != nullptr ? type->text : "llama";
  put_defaults(kDefaults, out);
  if (name == "llama") put_defaults(kLlama, out);
  if (name == "mistral" || name == "mixtral") put_defaults(kMistral, out);
  if (name == "gpt2") put_defaults(kGpt2, out);
  return out;
}

}  // namespace ostro::init
