// TaskFile: a task file: the corpora and tasks that a model is measured on. Keys that lm-evaluation-harness
// has too have its names. docs/guide/evaluate.md describes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::eval {

// Documents whose bits per byte are measured.
struct CorpusOptions {
  std::vector<std::string> files;  // files, directories, globs
  std::string text_key = "text";
  std::vector<std::string> tags;
  std::optional<int64_t> limit;   // documents
  std::optional<int64_t> stride;  // tokens; null: the model's context
  void visit_options(config::OptionTable& table);
};

// The options of all tasks: documents, which are rows of .jsonl files, and the parts of their prompts.
struct PromptOptions {
  std::vector<std::string> files;
  std::vector<std::string> tags;
  std::optional<int64_t> limit;  // documents
  std::string description;
  std::string doc_to_text;
  std::string target_delimiter = " ";
  int64_t num_fewshot = 0;
  std::vector<std::string> fewshot_files;  // empty: other documents of `files`
  int64_t fewshot_seed = 1234;
  std::string fewshot_delimiter = "\n\n";
  bool apply_chat_template = false;
  void visit_prompt_options(config::OptionTable& table);
};

// A field of the documents, a template, or for doc_to_target a number.
using TextOrNumber = config::Alternatives<int64_t, std::string>;
// One of these for the whole list, or a list of them.
using TextOrList = config::Alternatives<std::string, std::vector<std::string>>;

struct MultipleChoiceOptions : PromptOptions {
  static constexpr const char* kType = "multiple_choice";
  TextOrList doc_to_choice;
  TextOrNumber doc_to_target{std::string()};
  bool mutual_information = false;
  void visit_options(config::OptionTable& table);
};

struct LoglikelihoodOptions : PromptOptions {
  static constexpr const char* kType = "loglikelihood";
  std::string doc_to_target;
  void visit_options(config::OptionTable& table);
};

// Takes the answer out of what was generated.
struct RegexFilter {
  std::string pattern;  // empty: no filter
  int64_t group = 0;    // of matches: 0 is the first, -1 the last
  std::string fallback = "[invalid]";
  void visit_options(config::OptionTable& table);
};

struct GenerateOptions : PromptOptions {
  static constexpr const char* kType = "generate_until";
  std::string doc_to_target;
  std::vector<std::string> until = {"\n\n"};
  int64_t max_gen_toks = 256;
  double temperature = 0;
  int64_t seed = 0;
  RegexFilter regex;
  bool ignore_case = false;
  bool ignore_punctuation = false;
  std::vector<std::string> regexes_to_ignore;
  bool numeric = false;
  void visit_options(config::OptionTable& table);
};

using TaskOptions = std::variant<MultipleChoiceOptions, LoglikelihoodOptions, GenerateOptions>;
const PromptOptions& prompt_options(const TaskOptions& task);

struct TaskFile {
  std::map<std::string, CorpusOptions> corpora;
  std::map<std::string, TaskOptions> tasks;
  void visit_options(config::OptionTable& table);
  // Errors name the key, its value and what is allowed.
  Status validate() const;
};

// Reads and validates a task file. Relative names of files in it are relative to its folder.
Result<TaskFile> load_task_file(const std::string& path);

}  // namespace ostro::eval
