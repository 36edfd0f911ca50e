#include "ostro/eval/tasks/options.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/config/config.h"
#include "ostro/io/files/path.h"

namespace ostro::eval {

using config::Effect;
using config::option_error;

void CorpusOptions::visit_options(config::OptionTable& t) {
  t.add(&files, "files", Effect::kOutput, "", "files, directories and globs, relative to the task file");
  t.add(&text_key, "text_key", Effect::kOutput, "",
        "field of .jsonl and .parquet rows that holds the document");
  t.add(&tags, "tags", Effect::kOutput, "",
        "further nodes of the tree of averages, beside those of the name");
  t.add(&limit, "limit", Effect::kOutput, "documents", "only the first; null: all");
  t.add(&stride, "stride", Effect::kOutput, "tokens",
        "tokens that each window but the first scores; smaller ones give every token more context; null: the "
        "model's context");
}

void PromptOptions::visit_prompt_options(config::OptionTable& t) {
  t.add(&files, "files", Effect::kOutput, "",
        ".jsonl files (also .gz, .zst), directories and globs, relative to the task file");
  t.add(&tags, "tags", Effect::kOutput, "",
        "further nodes of the tree of averages, beside those of the name");
  t.add(&limit, "limit", Effect::kOutput, "documents", "only the first; null: all");
  t.add(&description, "description", Effect::kOutput, "", "text in front of every prompt, examples included");
  t.add(&doc_to_text, "doc_to_text", Effect::kOutput, "",
        "the prompt: a field of the documents, or a template");
  t.add(&target_delimiter, "target_delimiter", Effect::kOutput, "", "text between a prompt and its answer");
  t.add(&num_fewshot, "num_fewshot", Effect::kOutput, "", "solved examples in front of the prompt");
  t.add(&fewshot_files, "fewshot_files", Effect::kOutput, "",
        "where they come from; empty: other documents of files");
  t.add(&fewshot_seed, "fewshot_seed", Effect::kOutput, "", "of which examples a document gets");
  t.add(&fewshot_delimiter, "fewshot_delimiter", Effect::kOutput, "", "text behind each example");
  t.add(&apply_chat_template, "apply_chat_template", Effect::kOutput, "",
        "the prompt, with its description and examples, is a user's message, which the model's chat template "
        "writes; target_delimiter is left out before the answer, which begins the assistant's message");
}

void MultipleChoiceOptions::visit_options(config::OptionTable& t) {
  visit_prompt_options(t);
  t.add(&doc_to_choice, "doc_to_choice", Effect::kOutput, "",
        "the choices: a field that is a list of texts, one {{expression}} that gives one, or a list of "
        "templates");
  t.add(&doc_to_target, "doc_to_target", Effect::kOutput, "",
        "the right choice: a field or template that gives its number from 0 or its text, or a number");
  t.add(&mutual_information, "mutual_information", Effect::kOutput, "",
        "also acc_mutual_info: choices are scored a second time without the prompt");
}

void LoglikelihoodOptions::visit_options(config::OptionTable& t) {
  visit_prompt_options(t);
  t.add(&doc_to_target, "doc_to_target", Effect::kOutput, "",
        "the continuation that is scored: a field or a template");
}

void RegexFilter::visit_options(config::OptionTable& t) {
  t.add(
      &pattern, "pattern", Effect::kOutput, "",
      "regular expression, as Python's re has it; its group, of several the first that is not empty, or all "
      "of it, is the answer; empty: no filter");
  t.add(&group, "group", Effect::kOutput, "", "which match: 0 is the first, -1 the last");
  t.add(&fallback, "fallback", Effect::kOutput, "", "the answer where nothing matches");
}

void GenerateOptions::visit_options(config::OptionTable& t) {
  visit_prompt_options(t);
  t.add(&doc_to_target, "doc_to_target", Effect::kOutput, "",
        "the answer: a field or a template; a field that is a list holds several right answers");
  t.add(&until, "until", Effect::kOutput, "", "texts before which generation stops");
  t.add(&max_gen_toks, "max_gen_toks", Effect::kOutput, "tokens", "to generate at most");
  t.add(&temperature, "temperature", Effect::kOutput, "", "0: always the most likely token");
  t.add(&seed, "seed", Effect::kOutput, "", "of the random choices at another temperature");
  t.section(&regex, "regex", "takes the answer out of what was generated");
  t.add(&ignore_case, "ignore_case", Effect::kOutput, "", "exact_match does not look at the case of letters");
  t.add(&ignore_punctuation, "ignore_punctuation", Effect::kOutput, "",
        "exact_match does not look at ASCII punctuation");
  t.add(&regexes_to_ignore, "regexes_to_ignore", Effect::kOutput, "",
        "exact_match leaves out what these regular expressions match");
  t.add(&numeric, "numeric", Effect::kOutput, "",
        "also numeric_match: the last number of the generated text is the last number of the answer");
}

void TaskFile::visit_options(config::OptionTable& t) {
  t.add(&corpora, "corpora", Effect::kOutput, "",
        "corpora by name; parts of a name separated by / are nodes of a tree");
  t.add(&tasks, "tasks", Effect::kOutput, "", "tasks by name, as corpora");
}

const PromptOptions& prompt_options(const TaskOptions& task) {
  return std::visit([](const auto& t) -> const PromptOptions& { return t; }, task);
}

namespace {

Status check_path(const std::string& key, const std::string& name, const char* what) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (begin == end)
      return option_error(
          key, fmt::format("\"{}\" is no {}; use parts that are not empty, separated by /", name, what));
    begin = end + 1;
  }
  return {};
}

Status check_common(const std::string& key, const std::vector<std::string>& files,
                    const std::vector<std::string>& tags, const std::optional<int64_t>& limit) {
  if (files.empty()) return option_error(key + ".files", "is missing; name files, directories or globs");
  for (size_t i = 0; i < tags.size(); ++i)
    RETURN_IF_ERROR(check_path(fmt::format("{}.tags[{}]", key, i), tags[i], "tag"));
  if (limit && *limit < 1)
    return option_error(key + ".limit",
                        fmt::format("{} is not a number of documents; use 1 or more, or null", *limit));
  return {};
}

Status check_given(const std::string& key, const std::string& value) {
  return value.empty()
             ? Status(option_error(key, "is missing; name a field of the documents, or write a template"))
             : Status();
}

Status check_task(const std::string& key, const MultipleChoiceOptions& task) {
  const auto* one = std::get_if<std::string>(&task.doc_to_choice.value);
  const auto* many = std::get_if<std::vector<std::string>>(&task.doc_to_choice.value);
  if ((one != nullptr && one->empty()) || (many != nullptr && many->size() < 2))
    return option_error(key + ".doc_to_choice",
                        many != nullptr && many->size() == 1
                            ? "has one choice; at least 2 are needed"
                            : "is missing; name a field that is a list of texts, or list templates");
  const auto* target = std::get_if<std::string>(&task.doc_to_target.value);
  return target == nullptr ? Status() : check_given(key + ".doc_to_target", *target);
}
Status check_task(const std::string& key, const LoglikelihoodOptions& task) {
  return check_given(key + ".doc_to_target", task.doc_to_target);
}
Status check_task(const std::string& key, const GenerateOptions& task) {
  RETURN_IF_ERROR(check_given(key + ".doc_to_target", task.doc_to_target));
  if (task.max_gen_toks < 1)
    return option_error(key + ".max_gen_toks",
                        fmt::format("{} is not a number of tokens; use 1 or more", task.max_gen_toks));
  if (!(task.temperature >= 0))
    return option_error(key + ".temperature", fmt::format("{}: use 0 or more", task.temperature));
  for (size_t i = 0; i < task.until.size(); ++i)
    if (task.until[i].empty())
      return option_error(fmt::format("{}.until[{}]", key, i), "is empty: every answer would end at once");
  return {};
}

}  // namespace

Status TaskFile::validate() const {
  if (corpora.empty() && tasks.empty())
    return invalid_argument("has neither corpora nor tasks: there is nothing to measure");
  for (const auto& [name, corpus] : corpora) {
    const std::string key = "corpora." + name;
    RETURN_IF_ERROR(check_path(key, name, "name of a corpus"));
    RETURN_IF_ERROR(check_common(key, corpus.files, corpus.tags, corpus.limit));
    if (corpus.stride && *corpus.stride < 1)
      return option_error(key + ".stride", fmt::format("{} is not a number of tokens; use 1 or more, or null",
                                                       *corpus.stride));
  }
  for (const auto& [name, task] : tasks) {
    const std::string key = "tasks." + name;
    const PromptOptions& prompt = prompt_options(task);
    RETURN_IF_ERROR(check_path(key, name, "name of a task"));
    RETURN_IF_ERROR(check_common(key, prompt.files, prompt.tags, prompt.limit));
    RETURN_IF_ERROR(check_given(key + ".doc_to_text", prompt.doc_to_text));
    if (prompt.num_fewshot < 0)
      return option_error(key + ".num_fewshot", fmt::format("{}: use 0 or more", prompt.num_fewshot));
    RETURN_IF_ERROR(std::visit([&](const auto& t) { return check_task(key, t); }, task));
  }
  return {};
}

Result<TaskFile> load_task_file(const std::string& path) {
  TaskFile file;
  RETURN_IF_ERROR(config::load_options(path, {}, &file));
  if (const Status valid = file.validate(); !valid.ok()) return valid.error().with_context(path);
  const std::string folder = io::parent_path(path);
  const auto place = [&](std::vector<std::string>& files) {
    for (std::string& name : files)
      if (!name.starts_with('/') && name.find("://") == std::string::npos && folder != ".")
        name = io::join_path(folder, name);
  };
  for (auto& [name, corpus] : file.corpora) place(corpus.files);
  for (auto& [name, task] : file.tasks)
    std::visit([&](auto& t) { place(t.files), place(t.fewshot_files); }, task);
  return file;
}

}  // namespace ostro::eval
