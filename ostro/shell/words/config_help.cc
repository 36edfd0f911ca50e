#include "ostro/shell/words/config_help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "ostro/config/config.h"
#include "ostro/config/foreign_keys.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {
namespace {

using config::OptionInfo;

constexpr std::string_view kSections[] = {"trainer",  "data",      "model",   "optimizer",
                                          "numerics", "objective", "adapter", "chain"};

constexpr std::string_view kSoughtFirst[] = {
    "trainer.id",
    "trainer.log_dir",
    "trainer.num_train_steps",
    "trainer.train_batch_size",
    "trainer.seed",
    "trainer.mp",
    "trainer.initialize_from",
    "trainer.steps_per_eval",
    "trainer.checkpointer.save_interval",
    "trainer.checkpointer.keep",
    "trainer.tracker",
    "data.train_urls",
    "data.validation_urls",
    "data.validation_fraction",
    "data.tokenizer",
    "data.vocab_size",
    "data.cache_dir",
    "data.components",
    "data.train_weights",
    "data.shuffle",
    "model.type",
    "model.seq_len",
    "model.hidden_dim",
    "model.intermediate_dim",
    "model.num_layers",
    "model.num_heads",
    "model.num_kv_heads",
    "model.gradient_checkpointing",
    "optimizer.type",
    "optimizer.learning_rate",
    "optimizer.weight_decay",
    "optimizer.warmup",
    "optimizer.lr_schedule",
    "optimizer.decay",
    "optimizer.min_lr_ratio",
    "optimizer.max_grad_norm",
    "numerics.leaf_examples",
};

// The options of all sections, in the order of kSections.
std::vector<OptionInfo> options_in_order(const models::ModelChoices& models) {
  const std::vector<OptionInfo> all = config::list_options(train::TrainConfig(models));
  std::vector<OptionInfo> out;
  for (const std::string_view section : kSections)
    for (const OptionInfo& option : all)
      if (option.path.substr(0, option.path.find('.')) == section) out.push_back(option);
  return out;
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// The first part of a text, up to a semicolon or a long way.
std::string first_words(const std::string& text) {
  constexpr size_t kMost = 78;
  const std::string part = text.substr(0, text.find(';'));
  if (part.size() <= kMost) return part;
  return part.substr(0, part.rfind(' ', kMost)) + " ...";
}

}  // namespace

std::string short_keys_help(const std::string& command, const models::ModelChoices& models) {
  const std::vector<OptionInfo> all = options_in_order(models);
  std::string out;
  std::string_view section;
  for (const std::string_view path : kSoughtFirst) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const OptionInfo& o) { return o.path == path; });
    if (found == all.end()) continue;
    if (path.substr(0, path.find('.')) != section) {
      section = path.substr(0, path.find('.'));
      out += fmt::format("\n{}:\n", section);
    }
    std::string value = found->default_value;
    if (value.size() > 24) value = value.substr(0, 21) + "...";
    out += fmt::format("  {:<38}{:<26}{}\n", fmt::format("--{}", path), value, first_words(found->help));
  }
  return out + fmt::format(
                   "\nMore: {0} --help KEY is all about a key, a section or a word (--help optimizer, --help "
                   "rope);\n{0} --help-all lists every key, as docs/reference/config.md does.\n",
                   command);
}

std::string keys_help(const std::string& word, const models::ModelChoices& models) {
  const std::string wanted = word.starts_with("--") ? word.substr(2) : word;
  const auto is_section = [&](const OptionInfo& o) {
    return o.path == wanted || o.path.starts_with(wanted + ".") || wanted.empty();
  };
  const auto has_part = [&](const OptionInfo& o) { return o.path.find(wanted) != std::string::npos; };
  const std::vector<OptionInfo> all = options_in_order(models);
  std::vector<OptionInfo> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found), is_section);
  if (found.empty()) std::copy_if(all.begin(), all.end(), std::back_inserter(found), has_part);
  if (found.empty()) return {};
  return "In brackets: type, default, and what changes with the key: bits (the numbers of the run), "
         "schedule\n"
         "(what the hash chain records and when), plan (how the same numbers are computed), output (other "
         "files).\n" +
         config::options_help(found);
}

std::string key_for_option(const std::string& word, const models::ModelChoices& models) {
  std::string name = word.substr(0, word.find('='));
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  std::vector<std::string> paths;
  for (const OptionInfo& option : options_in_order(models))
    if (last_name(option.path) == name && !config::is_inside_element(option.path) &&
        std::find(paths.begin(), paths.end(), "--" + option.path) == paths.end() && paths.size() < 3)
      paths.push_back("--" + option.path);
  if (!paths.empty()) return fmt::format("; the key is {} here", fmt::join(paths, " or "));
  if (const config::ForeignKey* row = config::find_foreign(name, config::Node::string("given"))) {
    if (row->kind == config::ForeignKey::Kind::kRenamed) return fmt::format("; it is --{} here", row->ours);
    return fmt::format("; {}", row->text);
  }
  return {};
}

}  // namespace ostro::cli
