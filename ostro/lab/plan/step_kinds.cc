#include "ostro/lab/plan/step_kinds.h"

namespace ostro::lab {

std::span<const StepKind> step_kinds() {
  static const std::vector<StepKind> kKinds = {
      {"source",
       1,
       "files, pinned by their SHA-256",
       {{"files", ValueType::kTexts, "", true, "", "files, directories or globs, from the plan's folder"},
        {"licence", ValueType::kText, "", true, "", "what the texts' owner allows; an SPDX name"}}},
      {"tokenizer",
       1,
       "a byte-level BPE tokenizer, as ostro tokenizer train makes it",
       {{"from", ValueType::kStep, "", true, "source", "the texts"},
        {"vocab_size", ValueType::kInteger, "", true, "", "number of tokens"},
        {"pattern", ValueType::kText, "llama3", false, "", "how text is cut into pieces"},
        {"special_tokens", ValueType::kTexts, "[]", false, "", "more special tokens"},
        {"text_key", ValueType::kText, "text", false, "", "field of a row that holds the text"}}},
      {"tokens",
       1,
       "a token store, as ostro data build makes it",
       {{"from", ValueType::kStep, "", true, "source", "texts to train on"},
        {"held_out", ValueType::kStep, "", true, "source", "texts to evaluate on"},
        {"tokenizer", ValueType::kStep, "", true, "tokenizer", "the tokenizer"},
        {"text_key", ValueType::kText, "text", false, "", "field of a row that holds the text"}}},
      {"train",
       1,
       "a run, as ostro train makes it",
       {{"data", ValueType::kStep, "", true, "tokens", "the token store"},
        {"config", ValueType::kText, "", true, "", "configuration file, from the plan's folder"},
        {"set", ValueType::kSettings, "{}", false, "", "options that replace those of the file"}}},
      {"eval",
       1,
       "loss of a run's last checkpoint on the held-out texts, as ostro eval measures it",
       {{"of", ValueType::kStep, "", true, "train", "the run"}}},
  };
  return kKinds;
}

const StepKind* find_kind(std::string_view name) {
  for (const StepKind& kind : step_kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

}  // namespace ostro::lab
