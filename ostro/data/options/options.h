// DataOptions: the `data:` section of a configuration: the texts that are read, how they become tokens, and
// the order in which training sees them.
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

// A row is a text. Every token is a target.
struct TextFormat {
  static constexpr const char* kType = "text";
  std::string text_key = "text";
  void visit_options(config::OptionTable& table);
  bool operator==(const TextFormat&) const = default;
};

// A row is a list of messages, which a Jinja template turns into text.
struct ChatFormat {
  static constexpr const char* kType = "chat";
  std::string messages_field = "messages";
  std::optional<std::string> chat_template;  // null: the tokenizer's
  bool pack = true;
  bool mask_user_turns = true;
  void visit_options(config::OptionTable& table);
  bool operator==(const ChatFormat&) const = default;
};

// A row is a prompt and its response.
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

// A row holds token ids that another program made.
struct PrebuiltFormat {
  static constexpr const char* kType = "prebuilt";
  std::string input_ids_key = "input_ids";
  std::optional<std::string> loss_weights_key;  // null: every token has weight 1
  void visit_options(config::OptionTable& table);
  bool operator==(const PrebuiltFormat&) const = default;
};

// A row is a prompt with two answers, of which one was preferred: texts, or lists of messages. Without a
// prompt, the two have it as their common beginning.
struct PreferenceFormat {
  static constexpr const char* kType = "preference";
  std::string prompt_field = "prompt";
  std::string chosen_field = "chosen";
  std::string rejected_field = "rejected";
  std::optional<std::string> chat_template;  // null: the tokenizer's
  void visit_options(config::OptionTable& table);
  bool operator==(const PreferenceFormat&) const = default;
};

using RowFormat = std::variant<TextFormat, ChatFormat, SupervisedFormat, PrebuiltFormat, PreferenceFormat>;

// ---- order ----

// Shuffles whole blocks of sequences, then the sequences inside each window of blocks.
struct BlockShuffle {
  static constexpr const char* kType = "block";
  int64_t io_block_size = 256;  // sequences
  int64_t window_blocks = 512;
  void visit_options(config::OptionTable& table);
  bool operator==(const BlockShuffle&) const = default;
};

// true: shuffle the whole set; false: keep the stored order; a number: shuffle within eras of this many
// sequences.
using Shuffle = config::Alternatives<bool, int64_t, std::variant<BlockShuffle>>;

// Weights of components, by name. They are scaled to a sum of 1 where they are used.
using Weights = std::map<std::string, double>;

// Largest data.mixture_block_size. 2^40 blocks of this size can still be counted in 64 bits.
inline constexpr int64_t kMaxMixtureBlock = int64_t{1} << 22;

// The length that a run may have. kRestart: any, since a component begins anew when it is used up.
// kFirstExhausted: until a component would begin anew. kAllExhausted: until each has been seen whole.
// Loader::check_length in the room batches applies it.
enum class StopStrategy { kRestart, kFirstExhausted, kAllExhausted };
std::vector<std::string> option_names(StopStrategy);

// A row that cannot be read is an error, or is left out and counted.
enum class OnBadRow { kError, kSkip };
std::vector<std::string> option_names(OnBadRow);

// The type of ids in a store: what Levanter's reader expects (int64 for text, else int32), the smallest
// unsigned type of at least 16 bits that holds the vocabulary, or a given type.
enum class IdType { kLevanter, kSmallest, kUint16, kUint32, kInt32, kInt64 };
std::vector<std::string> option_names(IdType);

// How a document is left out of training. kMask: none of its tokens is a target. kBlank: none is context,
// either (docs/spec/batches.md).
enum class WithoutAs { kMask, kBlank };
std::vector<std::string> option_names(WithoutAs);

// ---- sources ----

// One data set of a mixture (data.components.<name>).
struct ComponentOptions {
  std::vector<std::string> train_urls;
  std::vector<std::string> validation_urls;
  double validation_fraction = 0.01;
  RowFormat format;
  std::optional<std::string> cache_dir;  // null: data.cache_dir/<name>
  std::optional<std::string> rows;       // file of verdicts (rows/row_verdicts.h); null: all rows are taken

  void visit_options(config::OptionTable& table);
};

// The number of tokens of a trained tokenizer if data.vocab_size is not set.
inline constexpr int64_t kDefaultVocabSize = 4096;

struct DataOptions {
  std::optional<std::string> tokenizer;  // file, or directory that holds one; null: trained from the texts
  std::optional<int64_t> vocab_size;     // of the one that is trained
  std::string cache_dir = "cache";
  // Either one data set, whose store is cache_dir itself ...
  std::vector<std::string> train_urls;  // globs and directories
  std::vector<std::string> validation_urls;
  double validation_fraction = 0.01;
  std::string text_key = "text";
  std::optional<std::string> rows;  // file of verdicts; null: all rows are taken
  // ... or several components, by name.
  std::map<std::string, ComponentOptions> components;
  config::Staged<Weights> train_weights;
  int64_t mixture_block_size = 2048;
  StopStrategy stop_strategy = StopStrategy::kRestart;

  Shuffle shuffle{true};
  std::optional<int64_t> target_budget, experiment_budget;  // tokens
  std::vector<std::string> without;  // documents (document_name.h) that training leaves out
  WithoutAs without_as = WithoutAs::kMask;
  OnBadRow on_bad_row = OnBadRow::kError;
  IdType id_type = IdType::kLevanter;
  int64_t chunk_cache_mib = 1024;
  std::optional<bool> enforce_bos;  // null: as the tokenizer does (tokenizer/model/text_ends.h)
  bool enforce_eos = true;
  bool block_cross_document_attention = false;

  void visit_options(config::OptionTable& table);
  // Errors name the key, its value and what is allowed.
  Status validate() const;
  // The path of the tokenizer: data.tokenizer, or the place where a trained one is kept.
  std::string tokenizer_path() const;
};

// A component with all defaults filled in. Each component becomes one store.
struct Component {
  std::string name;  // empty in a configuration without components
  std::string key;   // for messages: "data", "data.components.web"
  std::string cache_dir;
  std::vector<std::string> train_urls;
  std::vector<std::string> validation_urls;
  double validation_fraction = 0;
  RowFormat format;
  std::optional<std::string> rows;  // file of verdicts on the rows of train_urls

  // The component names no texts: the finished store or Levanter cache in cache_dir is used.
  bool is_in_place() const { return train_urls.empty() && validation_urls.empty(); }
};

// The components in the order of their names. A configuration without components has one, without a name.
std::vector<Component> components_of(const DataOptions& options);

// The weight of a component at a step. A single component that no stage names has weight 1.
double weight_of(const DataOptions& options, const std::string& component, int64_t step);

// True if rows of this format are packed whole into sequences. Otherwise sequences are cut out of one stream
// of tokens.
bool is_packed(const RowFormat& format);

// True if rows of this format are pairs of an answer that was preferred and one that was not.
bool is_preference(const RowFormat& format);
// True if the sequences of a configuration are such pairs. Then all components have them (validate()).
bool has_pairs(const DataOptions& options);

}  // namespace ostro::data
