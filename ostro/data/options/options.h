// The `data:` section: which texts are read, how they become tokens, and in which order they are seen.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::data {

// ---- how a row becomes tokens and loss weights ----

// A string, and every token of it is a target.
struct TextFormat {
  static constexpr const char* kType = "text";
  std::string text_key = "text";
  void visit_options(config::OptionTable& table);
  bool operator==(const TextFormat&) const = default;
};

// Messages, written out by a Jinja template.
struct ChatFormat {
  static constexpr const char* kType = "chat";
  std::string messages_field = "messages";
  std::optional<std::string> chat_template;  // null: the tokenizer's
  bool pack = true;
  bool mask_user_turns = true;
  void visit_options(config::OptionTable& table);
  bool operator==(const ChatFormat&) const = default;
};

// A prompt and its response.
struct SupervisedFormat {
  static constexpr const char* kType = "supervised";
  std::string input_field = "prompt";
  std::string output_field = "response";
  std::optional<std::string> separate_with;
  bool pack = true;
  bool mask_inputs = true;
  void visit_options(config::OptionTable& table);
  bool operator==(const SupervisedFormat&) const = default;
};

// Token ids made elsewhere.
struct PrebuiltFormat {
  static constexpr const char* kType = "prebuilt";
  std::string input_ids_key = "input_ids";
  std::optional<std::string> loss_weights_key;  // null: every token counts
  void visit_options(config::OptionTable& table);
  bool operator==(const PrebuiltFormat&) const = default;
};

using RowFormat = std::variant<TextFormat, ChatFormat, SupervisedFormat, PrebuiltFormat>;

// ---- order ----

// Whole blocks are permuted, then the sequences inside each window of blocks.
struct BlockShuffle {
  static constexpr const char* kType = "block";
  int64_t io_block_size = 256;  // sequences
  int64_t window_blocks = 512;
  void visit_options(config::OptionTable& table);
  bool operator==(const BlockShuffle&) const = default;
};

// true: the whole set, false: stored order, a number: within stretches of so many sequences.
using Shuffle = config::Alternatives<bool, int64_t, std::variant<BlockShuffle>>;

// Shares of components, by name; scaled to a sum of 1 where they are used.
using Weights = std::map<std::string, double>;

// Largest data.mixture_block_size: 2^40 times it can be counted.
inline constexpr int64_t kMaxMixtureBlock = int64_t{1} << 22;

enum class StopStrategy { kRestart, kFirstExhausted, kAllExhausted };
std::vector<std::string> option_names(StopStrategy);

enum class OnBadRow { kError, kSkip };
std::vector<std::string> option_names(OnBadRow);

// How ids lie in a store: what Levanter's reader wants (int64 for texts, else int32), the smallest unsigned
// type of 16 bits and more that holds the vocabulary, or a type.
enum class IdType { kLevanter, kSmallest, kUint16, kUint32, kInt32, kInt64 };
std::vector<std::string> option_names(IdType);

// ---- sources ----

struct ComponentOptions {
  std::vector<std::string> train_urls;
  std::vector<std::string> validation_urls;
  double validation_fraction = 0.01;
  RowFormat format;
  std::optional<std::string> cache_dir;  // null: data.cache_dir/<name>

  void visit_options(config::OptionTable& table);
};

struct DataOptions {
  std::string tokenizer = "tokenizer.json";  // file, or directory that holds one
  std::string cache_dir = "cache";
  // One data set, whose store is cache_dir itself ...
  std::vector<std::string> train_urls;  // globs and directories
  std::vector<std::string> validation_urls;
  double validation_fraction = 0.01;
  std::string text_key = "text";
  // ... or several, by name.
  std::map<std::string, ComponentOptions> components;
  config::Staged<Weights> train_weights;
  int64_t mixture_block_size = 2048;
  StopStrategy stop_strategy = StopStrategy::kRestart;

  Shuffle shuffle{true};
  std::optional<int64_t> target_budget, experiment_budget;  // tokens
  OnBadRow on_bad_row = OnBadRow::kError;
  IdType id_type = IdType::kLevanter;
  int64_t chunk_cache_mib = 1024;
  bool enforce_eos = true;
  bool block_cross_document_attention = false;

  void visit_options(config::OptionTable& table);
  // Errors name the key, its value and what is allowed.
  Status validate() const;
};

// A component with every default filled in: what is built into one store.
struct Component {
  std::string name;  // empty: the one data set of a configuration without components
  std::string key;   // for messages: "data", "data.components.web"
  std::string cache_dir;
  std::vector<std::string> train_urls;
  std::vector<std::string> validation_urls;
  double validation_fraction = 0;
  RowFormat format;

  // Names no texts: the store in cache_dir is used as it is.
  bool is_in_place() const { return train_urls.empty() && validation_urls.empty(); }
};

// The components in the order of their names; one without a name when there are none.
std::vector<Component> components_of(const DataOptions& options);

// The weight of a component at a step; a single component that no stage names has all the weight.
double weight_of(const DataOptions& options, const std::string& component, int64_t step);

// Whether rows of this format are packed whole into sequences, instead of cut out of a stream of tokens.
bool is_packed(const RowFormat& format);

}  // namespace ostro::data
