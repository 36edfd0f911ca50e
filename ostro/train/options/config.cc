#include "ostro/train/options/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/batches/loader/data_set.h"
#include "ostro/chain/canonical.h"
#include "ostro/chain/config_file.h"
#include "ostro/io/files/path.h"
#include "ostro/objects/s3/routing_file_system.h"

namespace ostro::train {

using config::IntMap;
using config::option_error;

namespace {

constexpr int64_t kMostConfigBytes = int64_t{16} << 20;  // of a file in an object store

// Checks that every entry names one of the axes, with a count from 1 to the axis' size (0: unknown yet).
Status check_axes(const char* key, const IntMap& counts, const IntMap& axes) {
  config::Mistakes mistakes;
  for (const auto& [name, count] : counts) {
    const auto axis = std::find_if(axes.begin(), axes.end(), [&](const auto& a) { return a.first == name; });
    std::vector<std::string> names;
    for (const auto& a : axes) names.push_back(a.first);
    const std::string path = fmt::format("{}.{}", key, name);
    if (axis == axes.end())
      mistakes.add(option_error(
          path, fmt::format("the model has no such axis to cut; it has {}; the nearest is \"{}\"",
                            fmt::join(names, ", "), config::nearest_name(name, names))));
    else if (count < 1)
      mistakes.add(option_error(path, fmt::format("{} is not a count; use 1 or more", count)));
    else if (axis->second > 0 && count > axis->second)
      mistakes.add(option_error(path, fmt::format("{} is more than the axis has: {}", count, axis->second)));
  }
  return mistakes.status();
}

// Checks that what a run splits over workers are axes of the model: another name would split nothing.
Status check_split_axes(const ShardingOptions& options, const models::ModelOptions& model) {
  std::vector<std::string> names;
  for (const IntMap& axes : {model.leaf_axes(), model.cell_axes()})
    for (const auto& [name, size] : axes)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  const auto check = [&](const char* key, const std::string& axis) -> Status {
    if (std::find(names.begin(), names.end(), axis) != names.end()) return {};
    if (names.empty())
      return option_error(key, fmt::format("\"{}\": the model has no axis that workers can split", axis));
    return option_error(key,
                        fmt::format("the model has no axis \"{}\" that workers can split; it has {}; the "
                                    "nearest is \"{}\"",
                                    axis, fmt::join(names, ", "), config::nearest_name(axis, names)));
  };
  config::Mistakes mistakes;
  for (const std::string& axis : options.tensor_parallel_axes)
    mistakes.add(check("trainer.tensor_parallel_axes", axis));
  // A model without the default's axis just has nothing to own in cells.
  if (options.fsdp_axis && options.fsdp_axis != ShardingOptions().fsdp_axis)
    mistakes.add(check("trainer.fsdp_axis", *options.fsdp_axis));
  for (const auto& [axis, mesh_axis] : options.axis_resources)
    mistakes.add(check("trainer.axis_resources", axis));
  for (const auto& [axis, mesh_axis] : options.parameter_axis_resources)
    mistakes.add(check("trainer.parameter_axis_resources", axis));
  return mistakes.status();
}

// Leaves in the order in which they nest, without those that cut nothing: one text for one meaning.
IntMap normal_leaves(const IntMap& leaves, const IntMap& axes) {
  IntMap out;
  for (const auto& [axis, size] : axes)
    for (const auto& [name, count] : leaves)
      if (name == axis && count > 1) out.emplace_back(name, count);
  return out;
}

}  // namespace

void TrainConfig::visit_options(config::OptionTable& t) {
  t.section(&data, "data", "texts, tokens and their order");
  t.section(&model, "model", "kind of model").fixed("the trained parameters are that model's");
  t.section(&adapter, "adapter", "small additions to the model, which are trained in place of it")
      .since_default("{type: none}")
      .fixed("the trained parameters are those of the adapter");
  t.section(&objective, "objective", "what training makes smaller")
      .since_default("{type: next_token}")
      .fixed("what the run begins with is measured for it");
  t.section(&optimizer, "optimizer", "how weights are updated")
      .fixed("the trained state is that optimizer's");
  t.section(&trainer, "trainer", "the run: its name, length, checkpoints and metrics");
  t.section(&numerics, "numerics", "how sums are cut; part of the result");
  t.section(&chain, "chain", "what the hash chain records");
}

int64_t TrainConfig::example_positions() const {
  return batches::row_positions(data, model_options().seq_len());
}

const models::ModelOptions& TrainConfig::model_options() const {
  return dynamic_cast<const models::ModelOptions&>(model.value());
}

models::ModelOptions& TrainConfig::model_options() {
  return dynamic_cast<models::ModelOptions&>(model.value());
}

Status TrainConfig::check_leaf_examples(int64_t from_step) const {
  const int64_t leaf = *numerics.leaf_examples;
  const std::vector<int64_t> batches = sizes_from(trainer.train_batch_size, from_step);
  const auto odd = std::find_if(batches.begin(), batches.end(), [&](int64_t b) { return b % leaf != 0; });
  if (odd == batches.end()) return {};
  int64_t below = std::min(leaf, *odd);
  const auto divides_all = [&](int64_t size) {
    return std::all_of(batches.begin(), batches.end(), [&](int64_t b) { return b % size == 0; });
  };
  while (!divides_all(below)) --below;
  return option_error(
      "trainer.train_batch_size",
      fmt::format("{} is not a multiple of numerics.leaf_examples, which is {}; use leaf_examples {} or "
                  "a batch of {}",
                  *odd, leaf, below, (*odd / leaf + 1) * leaf));
}

// Checks that speak of several sections are made where each of these is fine by itself.
Status TrainConfig::resolve() {
  config::Mistakes mistakes;
  const bool data_fine = mistakes.add(data.validate());
  const bool model_fine = mistakes.add(model_options().resolve());
  const bool trainer_fine = mistakes.add(trainer.validate());
  mistakes.add(std::visit([](const auto& a) { return a.validate(); }, adapter));
  if (lora_spec(adapter) && (trainer.train_only || !trainer.freeze.empty()))
    mistakes.add(option_error(trainer.train_only ? "trainer.train_only" : "trainer.freeze",
                              "with an adapter, the adapter is what is trained; leave it out"));
  mistakes.add(std::visit([](const auto& o) { return o.validate(); }, objective));
  if (data_fine && data::has_pairs(data) != (dpo_objective(objective) != nullptr))
    mistakes.add(option_error(
        "objective.type",
        data::has_pairs(data)
            ? fmt::format(
                  "next_token cannot train on pairs, and the rows of {} are preference pairs; use dpo",
                  data::components_of(data)[0].key)
            : fmt::format("dpo needs preference pairs, which the rows of {} are not; use format: {{type: "
                          "preference}} in data.components",
                          data::components_of(data)[0].key)));
  mistakes.add(std::visit([&](const auto& o) { return o.validate(trainer.num_train_steps); }, optimizer));
  if (numerics.slice_partials < 0)
    mistakes.add(option_error("numerics.slice_partials",
                              fmt::format("{} groups; use 0 or more", numerics.slice_partials)));
  if (numerics.leaf_examples && *numerics.leaf_examples < 1)
    mistakes.add(
        option_error("numerics.leaf_examples", fmt::format("{} is not positive", *numerics.leaf_examples)));
  else if (trainer_fine && model_fine && data_fine)
    mistakes.add(resolve_leaves());
  if (model_fine) mistakes.add(check_axes_of_model());
  if (const auto mp = parse_precision(trainer.mp);
      model_fine && mp.ok() && mp->integer_attention && !model_options().integer_attention())
    mistakes.add(option_error(
        "trainer.mp", fmt::format("\"{}\" has a=int8, and the attention of model.type {} has no products of "
                                  "integers (nor has that of model.rounding: released); leave a=int8 out",
                                  trainer.mp, model_options().type())));
  return mistakes.status();
}

Status TrainConfig::resolve_leaves() {
  if (!numerics.leaf_examples) {
    numerics.leaf_examples =
        default_leaf_examples(sizes_from(trainer.train_batch_size, 0), example_positions());
    numerics.leaf_is_default = true;
  }
  return check_leaf_examples(trainer.train_batch_size.stages.back().step);
}

Status TrainConfig::check_axes_of_model() {
  config::Mistakes mistakes;
  const IntMap leaf_axes = model_options().leaf_axes();
  mistakes.add(check_axes("numerics.leaves", numerics.leaves, leaf_axes));
  numerics.leaves = normal_leaves(numerics.leaves, leaf_axes);
  mistakes.add(check_axes("numerics.cells", numerics.cells, model_options().cell_axes()));
  std::sort(numerics.cells.begin(), numerics.cells.end());
  mistakes.add(check_split_axes(trainer.sharding, model_options()));
  return mistakes.status();
}

Result<TrainConfig> parse_train_config(const std::string& yaml, const std::string& name,
                                       models::ModelChoices models) {
  TrainConfig config(std::move(models));
  ASSIGN_OR_RETURN(const config::Node tree, config::parse_yaml(yaml, name, /*includes=*/false));
  RETURN_IF_ERROR(config::read_and_resolve(tree, &config));
  return config;
}

Result<TrainConfig> load_train_config(const std::string& path, std::span<const config::Override> overrides,
                                      models::ModelChoices models) {
  TrainConfig config(std::move(models));
  config::Mistakes mistakes;
  io::FileSystem& fs = objects::default_file_system();
  // Of a run that was killed at an amend it may lie beside config.yaml.
  const std::string file = chain::config_in_force(fs, path);
  config::ReadText from_store;
  if (!io::path_scheme(file).empty())
    from_store = [&](const std::string& name) { return fs.read_file(name, kMostConfigBytes); };
  ASSIGN_OR_RETURN(const config::Node tree, config::load_tree(file, overrides, &mistakes, from_store));
  mistakes.add(config::read_and_resolve(tree, &config));
  RETURN_IF_ERROR(mistakes.status());
  return config;
}

std::string canonical_text(const TrainConfig& config) {
  return chain::canonical_object(config::canonical_config(config)).value();  // it is an object
}

std::string run_directory(const TrainConfig& config) {
  const std::string path = config.trainer.log_dir + "/" + config.trainer.id;
  // In an object store "a//b" and "a/b" are two places, on a disk they are one.
  return io::path_scheme(path).empty() ? path : io::clean_path(path);
}

}  // namespace ostro::train
