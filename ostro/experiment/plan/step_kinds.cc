#include "ostro/experiment/plan/step_kinds.h"

#include "ostro/base/check.h"
#include "ostro/corpus_check/verdicts/filter.h"

namespace ostro::lab {

const Parameter* StepKind::find(std::string_view parameter) const {
  for (const Parameter& p : parameters)
    if (p.name == parameter) return &p;
  return nullptr;
}

bool StepKind::makes_run() const { return name == "train" || name == kForkKind; }

bool StepKind::gives_model() const { return name == kExportKind || name == kPublishKind; }

bool StepKind::fits(const Parameter& parameter) const {
  const bool gives_files =
      name == "source" || name == kCommandKind || name == "extract" || name == kCorpusKind;
  return parameter.type == ValueType::kSteps || name == parameter.of ||
         (gives_files && (parameter.of == "source" || parameter.of == "rows")) ||
         (gives_verdicts() && parameter.of == "rows") || (makes_run() && parameter.of == "train");
}

namespace {

using config::Effect;

// The run that a step is about, and the state of it that the step takes.
Parameter of_run() { return {"of", ValueType::kStep, "", true, "train", "the run"}; }
Parameter at_step() {
  return {
      "at", ValueType::kInteger, "", false, "", "the step of a checkpoint that it keeps; left out: the last"};
}

std::vector<Parameter> filter_parameters() {
  std::vector<Parameter> out = {{"from", ValueType::kStep, "", true, "rows", "the texts"}};
  for (const std::string& figure : corpus_check::filter_figures())
    out.push_back(
        {figure, ValueType::kRange, "null", false, "", "from least to most, as data check computes it"});
  out.push_back({"evaluation", ValueType::kTexts, "[]", false, "",
                 "files of which no text may stand in a row, from the plan's folder"});
  out.push_back(
      {"exact_duplicates", ValueType::kText, "keep", false, "", "drop: of equal texts the first is taken"});
  out.push_back({"near_duplicates", ValueType::kText, "keep", false, "",
                 "drop: of like and of equal texts the first is taken"});
  out.push_back({"text_key", ValueType::kText, "text", false, "", "field of a row that holds the text"});
  return out;
}

}  // namespace

std::span<const StepKind> step_kinds() {
  static const std::vector<StepKind> kKinds = {
      {"source",
       1,
       "files, pinned by their SHA-256",
       {{"files", ValueType::kTexts, "", true, "",
         "files, directories or globs, from the plan's folder, or s3://"},
        {"licence", ValueType::kText, "", true, "", "what the texts' owner allows; an SPDX name",
         Effect::kOutput}}},
      {kCorpusKind,
       1,
       "texts that are drawn: the same bytes on every machine",
       {{"kind", ValueType::kText, "", true, "", "web, code, maths, papers or tasks"},
        {"documents", ValueType::kInteger, "", true, "", "number of documents"},
        {"seed", ValueType::kInteger, "1", false, "", "another one gives other documents"},
        {"duplicates", ValueType::kShare, "0", false, "",
         "share of the documents that are earlier ones again"},
        {"near_duplicates", ValueType::kShare, "0", false, "", "share of those with one more sentence"},
        {"planted", ValueType::kShare, "0", false, "", "share of the others with an evaluation text in them"},
        {"evaluation", ValueType::kTexts, "[]", false, "", "files of these texts, from the plan's folder"},
        {"noise", ValueType::kShare, "0", false, "", "share of the words that are letters without sense"}}},
      {"tokenizer",
       1,
       "a byte-level BPE tokenizer, as ostro tokenizer train makes it",
       {{"from", ValueType::kStep, "", true, "rows", "the texts"},
        {"vocab_size", ValueType::kInteger, "", true, "", "number of tokens"},
        {"pattern", ValueType::kText, "llama3", false, "", "how text is cut into pieces"},
        {"special_tokens", ValueType::kTexts, "[]", false, "", "more special tokens"},
        {"text_key", ValueType::kText, "text", false, "", "field of a row that holds the text"}}},
      {"tokens",
       1,
       "a token store, as ostro data build makes it",
       {{"from", ValueType::kStep, "", true, "rows", "texts to train on"},
        {"held_out", ValueType::kStep, "", true, "source", "texts to evaluate on"},
        {"tokenizer", ValueType::kStep, "", true, "tokenizer", "the tokenizer"},
        {"text_key", ValueType::kText, "text", false, "", "field of a row that holds the text"}}},
      {"extract",
       1,
       "the texts of pages, which are HTML: a row for each, with its page and bytes",
       {{"from", ValueType::kStep, "", true, "source", "the pages: HTML files, or .jsonl with a page a line"},
        {"html_key", ValueType::kText, "html", false, "", "field of a row that holds the page"},
        {"content", ValueType::kText, "main", false, "", "main: without navigation and the like; or all"}}},
      {"filter", 2, "verdicts on rows: which are left out by rules, and why", filter_parameters()},
      {"quality",
       2,
       "verdicts on rows by a classifier that learns what good texts are",
       {{"from", ValueType::kStep, "", true, "rows", "the texts"},
        {"positive", ValueType::kStep, "", true, "rows", "good texts to learn from"},
        {"negative", ValueType::kStep, "", true, "rows", "other texts to learn from"},
        {"threshold", ValueType::kShare, "null", false, "", "rows with at least this score are taken"},
        {"share", ValueType::kShare, "null", false, "", "this share of the rows is taken, the best"},
        {"text_key", ValueType::kText, "text", false, "", "field of a row that holds the text"},
        {"dim", ValueType::kInteger, "16", false, "", "numbers of a word's vector"},
        {"buckets", ValueType::kInteger, "1048576", false, "", "vectors, shared by words and pairs of words"},
        {"epochs", ValueType::kInteger, "5", false, "", "how often each text is learned from"}}},
      {"train",
       1,
       "a run, as ostro train makes it",
       {{"data", ValueType::kParts, "", true, "tokens", "the token store, or a map of several by name"},
        {"config", ValueType::kText, "", true, "", "configuration file, from the plan's folder"},
        {"set", ValueType::kSettings, "{}", false, "", "options that replace those of the file"},
        {"phases", ValueType::kPhases, "", false, "", "parts of the run, with options of their own"},
        {"flops", ValueType::kNumber, "", false, "",
         "operations that it may take: the number of steps follows"},
        {"forecast", ValueType::kStep, "", false, "forecast", "the forecast that it checks, before it",
         Effect::kPlan},
        {"until", ValueType::kInteger, "", false, "",
         "of a halved training: the step of the rung it waits for (halving sets it, no plan has it)"},
        {"begun", ValueType::kStep, "", false, "train",
         "of a halved training: itself up to the rung before (halving sets it, no plan has it)",
         Effect::kPlan},
        {"rung", ValueType::kStep, "", false, "rung",
         "of a halved training: that rung, which says who goes on (halving sets it, no plan has it)",
         Effect::kPlan}}},
      {"rung",
       1,
       "which trainings of a sweep go on, by their losses at a step; halving makes it",
       {{"of", ValueType::kFamilies, "", true, "eval", "the evaluations of all that are still there"},
        {"keep", ValueType::kText, "", true, "", "the share of them that goes on"}}},
      {kForkKind,
       1,
       "a run that goes on with the state that another one had after a step, as ostro fork begins it",
       {{"of", ValueType::kStep, "", true, "train", "the other run"},
        {"at", ValueType::kInteger, "", true, "", "the step of a checkpoint that it keeps"},
        {"data", ValueType::kParts, "", false, "tokens", "another token store, or several"},
        {"set", ValueType::kSettings, "{}", false, "", "options that replace those of the other run"}}},
      {"fit",
       2,
       "how the loss follows from size and tokens: L = E + A / N^a + B / D^b",
       {{"of", ValueType::kFamilies, "", true, "eval", "the evaluations of the runs"},
        {"parameters", ValueType::kText, "all", false, "", "what N counts: all, or without_embeddings"}}},
      {"forecast",
       3,
       "the loss of a larger run, before it is done",
       {{"fit", ValueType::kStep, "", true, "fit", "the fit"},
        {"data", ValueType::kParts, "", true, "tokens", "the token store, or a map of several by name"},
        {"config", ValueType::kText, "", true, "", "configuration file of the larger run"},
        {"set", ValueType::kSettings, "{}", false, "", "options that replace those of the file"},
        {"flops", ValueType::kNumber, "", true, "", "operations that it may take"},
        {"runs", ValueType::kInteger, "1", false, "",
         "the number of larger runs, whose mean loss is foreseen"}}},
      {"eval",
       1,
       "loss of a run's last checkpoint on the held-out texts, as ostro eval measures it",
       {of_run(),
        {"sets", ValueType::kTexts, "", false, "",
         "the components of a mixture whose held-out texts count; left out: all"},
        {"at", ValueType::kText, "", false, "",
         "last (also where it is left out), or kept: every checkpoint that the run keeps"}}},
      {"sample",
       1,
       "texts that a run's checkpoint makes of prompts, as ostro sample makes them",
       {of_run(),
        {"prompts", ValueType::kTexts, "", true, "", "the beginnings of the texts"},
        {"tokens", ValueType::kInteger, "32", false, "", "new tokens of each at most"},
        {"temperature", ValueType::kNumber, "", false, "",
         "1: as the model's probabilities; left out: always the most likely token"},
        {"seed", ValueType::kInteger, "1", false, "", "of the random choices"},
        at_step()}},
      {kExportKind,
       1,
       "a model directory in the form of Hugging Face, as ostro export writes it",
       {of_run(),
        {"dtype", ValueType::kText, "", false, "",
         "type of the weights: f32, bf16 or f16; left out: of an import as it came in, else f32"},
        at_step()}},
      {kPublishKind,
       1,
       "a bundle of a run, as ostro publish writes it",
       {of_run(),
        {"dtype", ValueType::kText, "", false, "", "type of the weights, as of export"},
        {"checkpoints", ValueType::kInteger, "", false, "",
         "so many more states are in it, from which steps can be replayed", Effect::kOutput},
        {"licence", ValueType::kText, "", false, "", "of the model; an SPDX name", Effect::kOutput}}},
      {kCommandKind,
       1,
       "files that any program makes, in a sandbox, twice with the same bytes",
       {{"program", ValueType::kWords, "", true, "", "the program and its words"},
        {"files", ValueType::kTexts, "[]", false, "", "files that it reads, from the plan's folder"},
        {"inputs", ValueType::kSteps, "{}", false, "", "names, and the steps whose outputs are in/NAME"},
        {"outputs", ValueType::kTexts, "", true, "", "files and folders that it makes in out"}}},
  };
  return kKinds;
}

const char* value_type_text(ValueType type) {
  switch (type) {
    case ValueType::kText: return "a text";
    case ValueType::kTexts: return "a list of texts";
    case ValueType::kInteger: return "an integer above 0";
    case ValueType::kShare: return "a number from 0 to 1";
    case ValueType::kRange: return "[least, most], each a number or null";
    case ValueType::kSettings: return "a map of options";
    case ValueType::kStep: return "$NAME";
    case ValueType::kSteps: return "a map from names to $NAME";
    case ValueType::kWords: return "a list of words";
    case ValueType::kNumber: return "a number above 0";
    case ValueType::kFamilies: return "a list of $NAME";
    case ValueType::kParts: return "$NAME, or a map from names to $NAME";
    case ValueType::kPhases: return "a list of phases";
  }
  OSTRO_CHECK(false, "a type of parameters without a text");
}

std::string kinds_that_fit(const Parameter& parameter) {
  std::string out;
  for (const StepKind& kind : step_kinds())
    if (kind.fits(parameter)) out += (out.empty() ? "" : " or ") + kind.name;
  return out;
}

const StepKind* find_kind(std::string_view name) {
  for (const StepKind& kind : step_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

}  // namespace ostro::lab
