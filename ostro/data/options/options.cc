#include "ostro/data/options/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "ostro/data/options/document_name.h"
#include "ostro/io/files/path.h"
#include "ostro/io/files/plain_path.h"

namespace ostro::data {

using config::Effect;
using config::option_error;

namespace {

constexpr int64_t kLeastVocabSize = 257, kMostVocabSize = (1 << 24) - 1;
// Reasons why a run cannot continue with another value.
constexpr const char* kContent = "the run's data is made with it";
constexpr const char* kOrder = "the order of the data follows from it, so what was seen could come again";

constexpr const char* kWithout =
    "batches that were done had the documents, or lacked them; begin a fork instead";

// All documents of `corpus` are in the training split, and some are left out.
const std::vector<std::pair<std::string, std::string>> kAllTrained = {
    {"data.validation_urls", "[\"held_out/**/*.txt\"]"}, {"data.without", "[\"a.jsonl:1\", \"a.jsonl:3\"]"}};

// A configuration with components. Tests change one option on top of it.
const std::vector<std::pair<std::string, std::string>> kMixture = {
    {"data.train_urls", "[]"},
    {"data.validation_fraction", "0.01"},
    {"data.components",
     "{web: {train_urls: [corpus], validation_fraction: 0.2}, code: {train_urls: [\"other/**/*.txt\"]}}"},
    {"data.train_weights", "{web: 0.75, code: 0.25}"},
    {"data.mixture_block_size", "8"}};

Status check_fraction(const std::string& key, double value) {
  if (value >= 0 && value < 1) return {};
  return option_error(key + ".validation_fraction",
                      fmt::format("{} is not a fraction; use 0 or more and less than 1", value));
}

Status check_at_least_1(const std::string& key, int64_t value, const char* what) {
  if (value >= 1) return {};
  return option_error(key, fmt::format("{} is not a number of {}; use 1 or more", value, what));
}

// Names are used for folders below data.cache_dir, for files of a bundle's ledger and in names of metrics.
Status check_name(const std::string& name, const std::map<std::string, ComponentOptions>& all) {
  const std::string key = "data.components." + name;
  if (!io::is_plain_path(name))
    return option_error(key,
                        fmt::format("\"{}\" cannot name a component; use letters, digits, _, - and . (not "
                                    "first), in parts separated by /",
                                    name));
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (part == "train" || part == "validation" || part == "rows")
      return option_error(
          key, fmt::format("\"{}\" is the name of a folder inside token stores; use another", part));
    begin = end + 1;
  }
  for (const auto& [other, options] : all)
    for (const char* end : {"/", ".rows/", ".sources/", ".content.json/"})
      if (other.starts_with(name + end))
        return option_error(key,
                            fmt::format("\"{}\" would lie inside its folder; rename one of them", other));
  return {};
}

const char* type_of(const RowFormat& format) {
  return std::visit([](const auto& f) { return f.kType; }, format);
}

Status check_format(const std::string& key, const RowFormat& format) {
  const auto need = [&](const char* name, const std::string& value) -> Status {
    if (!value.empty()) return {};
    return option_error(fmt::format("{}.format.{}", key, name), "is empty; name a field of the rows");
  };
  if (const auto* text = std::get_if<TextFormat>(&format)) return need("text_key", text->text_key);
  if (const auto* chat = std::get_if<ChatFormat>(&format))
    return need("messages_field", chat->messages_field);
  if (const auto* pair = std::get_if<SupervisedFormat>(&format)) {
    RETURN_IF_ERROR(need("input_field", pair->input_field));
    return need("output_field", pair->output_field);
  }
  if (const auto* preference = std::get_if<PreferenceFormat>(&format)) {
    RETURN_IF_ERROR(need("prompt_field", preference->prompt_field));
    RETURN_IF_ERROR(need("chosen_field", preference->chosen_field));
    return need("rejected_field", preference->rejected_field);
  }
  const auto& ids = std::get<PrebuiltFormat>(format);
  RETURN_IF_ERROR(need("input_ids_key", ids.input_ids_key));
  return ids.loss_weights_key ? need("loss_weights_key", *ids.loss_weights_key) : Status{};
}

Status check_without(const DataOptions& o) {
  if (o.without.empty() && o.without_as != WithoutAs::kMask)
    return option_error("data.without_as", "says how data.without is done, and that names no document");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < o.without.size(); ++i) {
    const std::string key = fmt::format("data.without[{}]", i);
    const auto name = parse_document_name(o.without[i]);
    if (!name.ok()) return option_error(key, name.error().message());
    if (!seen.insert(o.without[i]).second)
      return option_error(key, fmt::format("{} is in the list already; name it once", o.without[i]));
  }
  return {};
}

Status check_weights(const DataOptions& o) {
  std::vector<std::string> names;
  for (const auto& [name, c] : o.components) names.push_back(name);
  std::map<std::string, bool> named;
  for (size_t i = 0; i < o.train_weights.stages.size(); ++i) {
    const auto& [step, weights] = o.train_weights.stages[i];
    const std::string key =
        o.train_weights.stages.size() == 1 ? "data.train_weights" : fmt::format("data.train_weights[{}]", i);
    double sum = 0;
    for (const auto& [name, weight] : weights) {
      const auto found = o.components.find(name);
      if (found == o.components.end())
        return option_error(key, fmt::format("there is no component \"{}\"; the nearest is \"{}\"", name,
                                             config::nearest_name(name, names)));
      if (!(weight >= 0) || !std::isfinite(weight))
        return option_error(key + "." + name, fmt::format("{} is not a weight; use 0 or more", weight));
      if (weight > 0 && found->second.train_urls.empty() && !found->second.validation_urls.empty())
        return option_error(
            key + "." + name,
            fmt::format("{} is above 0, but data.components.{} has no train_urls; give it some, "
                        "or weight 0 for evaluation only",
                        weight, name));
      named[name] = true;
      sum += weight;
    }
    const bool implied = weights.empty() && o.train_weights.stages.size() == 1 && names.size() == 1;
    if (!implied && !(sum > 0 && std::isfinite(sum)))
      return option_error(key, fmt::format("no component has a weight above 0; weigh {}, like {{{}: 1}}",
                                           fmt::join(names, ", "), names[0]));
    if (implied) named[names[0]] = true;
  }
  for (const std::string& name : names)
    if (!named.contains(name))
      return option_error(
          "data.train_weights",
          fmt::format("component \"{0}\" has no weight; add {0}: 0 for evaluation only", name));
  return {};
}

Status check_components(const DataOptions& o) {
  config::Mistakes mistakes;
  if (!o.train_urls.empty() || !o.validation_urls.empty())
    mistakes.add(option_error(o.train_urls.empty() ? "data.validation_urls" : "data.train_urls",
                              "texts are named here and in data.components; move them into a component"));
  if (o.text_key != "text")
    mistakes.add(option_error(
        "data.text_key", "is for a configuration without components; set format.text_key of each component"));
  if (o.validation_fraction != DataOptions().validation_fraction)
    mistakes.add(
        option_error("data.validation_fraction",
                     fmt::format("{} is for a configuration without components; set validation_fraction of "
                                 "each component",
                                 o.validation_fraction)));
  if (o.rows)
    mistakes.add(
        option_error("data.rows", "is for a configuration without components; set rows of each component"));
  std::map<std::string, std::string> stores;
  for (const Component& c : components_of(o)) {
    if (c.rows && c.train_urls.empty())
      mistakes.add(option_error(c.key + ".rows", "are verdicts on the rows of train_urls, which is empty"));
    mistakes.add(check_name(c.name, o.components));
    mistakes.add(check_fraction(c.key, c.validation_fraction));
    mistakes.add(check_format(c.key, c.format));
    if (c.cache_dir.empty()) {
      mistakes.add(option_error(c.key + ".cache_dir", "is empty; name a directory or null"));
      continue;
    }
    const auto [other, is_new] = stores.emplace(c.cache_dir, c.name);
    if (!is_new)
      mistakes.add(option_error(c.key + ".cache_dir", fmt::format("{} is the store of component \"{}\", too",
                                                                  c.cache_dir, other->second)));
  }
  const std::vector<Component> all = components_of(o);
  for (const Component& c : all)
    if (is_preference(c.format) != is_preference(all[0].format))
      mistakes.add(
          option_error(c.key + ".format.type",
                       fmt::format("{} and {} of {} cannot be in one run: a sequence of the one holds a "
                                   "pair of answers; give them runs of their own",
                                   type_of(c.format), type_of(all[0].format), all[0].key)));
  mistakes.add(check_weights(o));
  return mistakes.status();
}

}  // namespace

std::vector<std::string> option_names(StopStrategy) {
  return {"restart", "first_exhausted", "all_exhausted"};
}
std::vector<std::string> option_names(OnBadRow) { return {"error", "skip"}; }
std::vector<std::string> option_names(WithoutAs) { return {"mask", "blank"}; }
std::vector<std::string> option_names(IdType) {
  return {"levanter", "smallest", "uint16", "uint32", "int32", "int64"};
}

void TextFormat::visit_options(config::OptionTable& t) {
  t.add(&text_key, "text_key", Effect::kBits, "", "field that holds the text");
}

void ChatFormat::visit_options(config::OptionTable& t) {
  t.add(&messages_field, "messages_field", Effect::kBits, "", "field that holds the list of messages");
  t.add(&chat_template, "chat_template", Effect::kBits, "Jinja",
        "how messages are written out; null: the tokenizer's template");
  t.add(&pack, "pack", Effect::kBits, "",
        "as many whole conversations as fit into a sequence; false: one conversation each");
  t.add(&mask_user_turns, "mask_user_turns", Effect::kBits, "",
        "only what the template marks as generated counts in the loss");
}

void SupervisedFormat::visit_options(config::OptionTable& t) {
  t.add(&input_field, "input_field", Effect::kBits, "", "field that holds the prompt");
  t.add(&output_field, "output_field", Effect::kBits, "", "field that holds the response");
  t.add(&separate_with, "separate_with", Effect::kBits, "", "text between prompt and response");
  t.add(&pack, "pack", Effect::kBits, "", "as many whole pairs as fit into a sequence; false: one pair each");
  t.add(&mask_inputs, "mask_inputs", Effect::kBits, "", "only the response counts in the loss");
}

void PreferenceFormat::visit_options(config::OptionTable& t) {
  t.add(&prompt_field, "prompt_field", Effect::kBits, "",
        "field that holds the prompt, a text or messages; rows without it have the prompt as the common "
        "beginning of both answers");
  t.add(&chosen_field, "chosen_field", Effect::kBits, "", "field that holds the answer that was preferred");
  t.add(&rejected_field, "rejected_field", Effect::kBits, "", "field that holds the other answer");
  t.add(&chat_template, "chat_template", Effect::kBits, "Jinja",
        "how messages are written out; null: the tokenizer's template");
}

void PrebuiltFormat::visit_options(config::OptionTable& t) {
  t.add(&input_ids_key, "input_ids_key", Effect::kBits, "", "field that holds the list of token ids");
  t.add(&loss_weights_key, "loss_weights_key", Effect::kBits, "",
        "field that holds each token's weight as a target; null: all 1");
}

void BlockShuffle::visit_options(config::OptionTable& t) {
  t.add(&io_block_size, "io_block_size", Effect::kBits, "sequences",
        "how many neighbouring sequences are moved together")
      .other("3")
      .fixed(kOrder);
  t.add(&window_blocks, "window_blocks", Effect::kBits, "blocks",
        "how many blocks make a window, in which sequences are then permuted")
      .other("2")
      .beside({{"data.shuffle", "{type: block, io_block_size: 4}"}})
      .fixed(kOrder);
}

void ComponentOptions::visit_options(config::OptionTable& t) {
  t.add(&train_urls, "train_urls", Effect::kBits, "globs",
        "training texts; if validation_urls is empty too, the store in cache_dir is used as it is")
      .by_content();
  t.add(&validation_urls, "validation_urls", Effect::kBits, "globs",
        "held-out texts; empty: see validation_fraction")
      .by_content();
  t.add(&validation_fraction, "validation_fraction", Effect::kBits, "fraction of rows",
        "share of the training rows held out, chosen by their hash, when there are no validation_urls");
  t.section(&format, "format", "how a row becomes tokens");
  t.add(&cache_dir, "cache_dir", Effect::kOutput, "path",
        "where the component's token store is, or is built; null: data.cache_dir/<name>");
  t.add(&rows, "rows", Effect::kBits, "path",
        "file of verdicts on the rows of train_urls, which says what is left out and why "
        "(formats/rows.md); null: all rows are taken")
      .by_content();
}

void DataOptions::visit_options(config::OptionTable& t) {
  t.add(&tokenizer, "tokenizer", Effect::kBits, "path",
        "Hugging Face tokenizer.json or SentencePiece .model, or a directory that holds one; null: one is "
        "trained from the training texts and kept as data.cache_dir/tokenizer.json")
      .other("other_tokenizer.json")
      .by_content();
  t.add(&vocab_size, "vocab_size", Effect::kBits, "tokens",
        "of the tokenizer that is trained where data.tokenizer is null, fewer when the texts run out of "
        "pairs; null: 4096")
      .other("280")
      .beside({{"data.tokenizer", "null"}})
      .by_content();
  t.add(&cache_dir, "cache_dir", Effect::kOutput, "path", "where the token store is built")
      .other("other_cache");
  t.add(&train_urls, "train_urls", Effect::kBits, "globs",
        "training texts: files, directories or globs (** crosses folders); .jsonl, .ndjson and .json "
        "(also .gz, .zst) hold a document a line, .parquet one a row, a text file is one document")
      .other("[\"other/**/*.txt\"]")
      .by_content();
  t.add(&validation_urls, "validation_urls", Effect::kBits, "globs",
        "held-out texts; empty: see validation_fraction")
      .other("[\"held_out/**/*.txt\"]")
      .by_content();
  t.add(&validation_fraction, "validation_fraction", Effect::kBits, "fraction of documents",
        "share of the training documents held out, chosen by their hash, when there are no validation_urls")
      .fixed(kContent);
  t.add(&text_key, "text_key", Effect::kBits, "", "field of a JSON line that holds the text")
      .other("content")
      .fixed(kContent);
  t.add(&rows, "rows", Effect::kBits, "path",
        "file of verdicts on the rows of train_urls, which says what is left out and why "
        "(formats/rows.md); null: all rows are taken")
      .other("rows.jsonl")
      .by_content();
  t.add(&components, "components", Effect::kBits, "",
        "several data sets by name, each with a store of its own; data.train_urls, validation_urls, "
        "validation_fraction and text_key are then not used, each component has its own")
      .other(
          "{web: {train_urls: [corpus], format: {text_key: content}}, code: {train_urls: "
          "[\"other/**/*.txt\"]}}")
      .beside(kMixture)
      .since_default("{}")
      .fixed(kContent);  // audit::fixed_at_amends lets an amend add components
  t.add(&train_weights, "train_weights", Effect::kBits, "",
        "shares of the components in the training sequences; 0: evaluation only; or a list of [step, shares]")
      .other("[[0, {web: 0.75, code: 0.25}], [3, {web: 0.5, code: 0.5}]]")
      .beside(kMixture)
      .since_default("{}");
  t.add(&mixture_block_size, "mixture_block_size", Effect::kBits, "sequences",
        "sequences in a block; every block holds the components in their exact shares")
      .other("4")
      .beside(kMixture)
      .since_default("2048")
      .fixed("how often each component was seen so far is counted in blocks of this size");
  t.add(
       &stop_strategy, "stop_strategy", Effect::kOutput, "",
       "how long a run may be; restart: no limit, a component begins anew in another order; first_exhausted: "
       "until a component would begin anew; all_exhausted: until each has been seen whole")
      .other("first_exhausted")
      .beside(kMixture);
  t.add(&shuffle, "shuffle", Effect::kBits, "sequences",
        "true: a new permutation of the whole set every epoch; false: stored order; a number: permute within "
        "ranges of that many sequences; {type: block}: permute blocks, then within windows of blocks")
      .other("64")
      .fixed(kOrder);
  t.add(&target_budget, "target_budget", Effect::kBits, "tokens",
        "simulated epoching: the length of the training that this run stands for; every component is cut to "
        "experiment_budget / target_budget of its sequences")
      .other("100000")
      .beside({{"data.experiment_budget", "8000"}, {"data.target_budget", "16000"}})
      .since_default("null")
      .fixed(kOrder);
  t.add(&experiment_budget, "experiment_budget", Effect::kBits, "tokens",
        "simulated epoching: the length of this run")
      .other("4000")
      .beside({{"data.experiment_budget", "8000"}, {"data.target_budget", "16000"}})
      .since_default("null")
      .fixed(kOrder);
  t.add(&without, "without", Effect::kBits, "documents",
        "documents that training leaves out where its order has them, each FILE:N: a source file, or the end "
        "of "
        "its path, and the document's number in it, from 1; all else stays as it is")
      .other("[\"a.jsonl:2\", \"corpus/a.jsonl:4\"]")
      .beside(kAllTrained)
      .since_default("[]")
      .fixed(kWithout);
  t.add(&without_as, "without_as", Effect::kBits, "",
        "mask: no token of such a document is a target; blank: nor is it context, every token of it is id 0")
      .other("blank")
      .beside(kAllTrained)
      .since_default("mask")
      .fixed(kWithout);
  t.add(
       &on_bad_row, "on_bad_row", Effect::kBits, "",
       "what happens to a row that cannot be read; error: the build stops; skip: it is left out, counted and "
       "reported")
      .other("skip")
      .since_default("error")
      .fixed(kContent);
  t.add(&id_type, "id_type", Effect::kOutput, "",
        "type of ids in stores that are built: levanter (int64 for texts, else int32: what Levanter opens), "
        "smallest "
        "(uint16 or uint32, by the vocabulary), or one of the others; tokens and hashes are the same")
      .other("smallest");
  t.add(&chunk_cache_mib, "chunk_cache_mib", Effect::kOutput, "MiB",
        "memory for decoded chunks of token stores; data that fit are kept");
  t.add(
       &enforce_bos, "enforce_bos", Effect::kBits, "",
       "begin every text with the tokenizer's beginning token; null: as the tokenizer does for any text (its "
       "post-processor), so that most begin with it where it has one; a store without it is then used, too")
      .other("true")
      .since_default("null")
      .fixed(kContent);
  t.add(&enforce_eos, "enforce_eos", Effect::kBits, "",
        "end every document with the tokenizer's end-of-text token")
      .fixed(kContent);
  t.add(&block_cross_document_attention, "block_cross_document_attention", Effect::kBits, "",
        "a token attends to its own document only");
}

Status DataOptions::validate() const {
  config::Mistakes mistakes;
  if (tokenizer && tokenizer->empty())
    mistakes.add(option_error(
        "data.tokenizer",
        "is empty; name a tokenizer.json, a .model, or its directory, or use null to have one trained"));
  if (vocab_size && tokenizer)
    mistakes.add(option_error(
        "data.vocab_size",
        fmt::format("{} is for a tokenizer that is trained, and data.tokenizer names {}; leave out one",
                    *vocab_size, *tokenizer)));
  if (vocab_size && (*vocab_size < kLeastVocabSize || *vocab_size > kMostVocabSize))
    mistakes.add(
        option_error("data.vocab_size", fmt::format("{}: use {} (256 bytes and the end of a text) to {}",
                                                    *vocab_size, kLeastVocabSize, kMostVocabSize)));
  if (cache_dir.empty()) mistakes.add(option_error("data.cache_dir", "is empty; name a directory"));
  if (!components.empty()) {
    mistakes.add(check_components(*this));
  } else {
    if (train_urls.empty())
      mistakes.add(option_error(
          "data.train_urls",
          "is empty; list files, directories or globs, or name several sets in data.components"));
    if (train_weights.stages.size() > 1 || !train_weights.stages[0].value.empty())
      mistakes.add(option_error("data.train_weights", "weighs components, and data.components names none"));
    if (text_key.empty())
      mistakes.add(option_error("data.text_key", "is empty; name a field of the JSON lines"));
  }
  mistakes.add(check_without(*this));
  mistakes.add(check_fraction("data", validation_fraction));
  mistakes.add(check_at_least_1("data.mixture_block_size", mixture_block_size, "sequences"));
  if (mixture_block_size > kMaxMixtureBlock)
    mistakes.add(option_error("data.mixture_block_size", fmt::format("{} is above {}, the largest block",
                                                                     mixture_block_size, kMaxMixtureBlock)));
  if (chunk_cache_mib < 0 || chunk_cache_mib > int64_t{1} << 32)
    mistakes.add(option_error("data.chunk_cache_mib", fmt::format("{} is not a number of MiB in 0..{}",
                                                                  chunk_cache_mib, int64_t{1} << 32)));
  if (const int64_t* era = std::get_if<int64_t>(&shuffle.value); era && *era < 1)
    mistakes.add(option_error(
        "data.shuffle", fmt::format("{} is not a number of sequences; use true, false or 1 and more", *era)));
  if (const auto* block = std::get_if<std::variant<BlockShuffle>>(&shuffle.value)) {
    const auto& [io_block_size, window_blocks] = std::get<BlockShuffle>(*block);
    mistakes.add(check_at_least_1("data.shuffle.io_block_size", io_block_size, "sequences"));
    if (mistakes.add(check_at_least_1("data.shuffle.window_blocks", window_blocks, "blocks")) &&
        io_block_size > INT64_MAX / window_blocks)
      mistakes.add(
          option_error("data.shuffle.window_blocks",
                       fmt::format("{} blocks of {} sequences are too many", window_blocks, io_block_size)));
  }
  if (target_budget.has_value() != experiment_budget.has_value())
    mistakes.add(option_error(target_budget ? "data.experiment_budget" : "data.target_budget",
                              "is null and the other budget is not; simulated epoching needs both"));
  if (target_budget) {
    mistakes.add(check_at_least_1("data.experiment_budget", *experiment_budget, "tokens"));
    if (*experiment_budget > *target_budget)
      mistakes.add(option_error("data.experiment_budget",
                                fmt::format("{} is more than data.target_budget, which is {}",
                                            *experiment_budget, *target_budget)));
  }
  return mistakes.status();
}

std::string DataOptions::tokenizer_path() const {
  return tokenizer ? *tokenizer : io::join_path(cache_dir, "tokenizer.json");
}

std::vector<Component> components_of(const DataOptions& o) {
  if (o.components.empty())
    return {{"", "data", o.cache_dir, o.train_urls, o.validation_urls, o.validation_fraction,
             TextFormat{o.text_key}, o.rows}};
  std::vector<Component> all;
  for (const auto& [name, c] : o.components)
    all.push_back({name, "data.components." + name, c.cache_dir.value_or(o.cache_dir + "/" + name),
                   c.train_urls, c.validation_urls, c.validation_fraction, c.format, c.rows});
  return all;
}

double weight_of(const DataOptions& options, const std::string& component, int64_t step) {
  const Weights& weights = options.train_weights.at(step);
  const auto found = weights.find(component);
  if (found != weights.end()) return found->second;
  return weights.empty() ? 1 : 0;
}

bool is_packed(const RowFormat& format) {
  return std::holds_alternative<ChatFormat>(format) || std::holds_alternative<SupervisedFormat>(format);
}

bool is_preference(const RowFormat& format) { return std::holds_alternative<PreferenceFormat>(format); }

bool has_pairs(const DataOptions& options) { return is_preference(components_of(options)[0].format); }

}  // namespace ostro::data
