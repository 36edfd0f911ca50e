// StepKind: what a plan may say of each kind of step: its parameters, and the version of what it computes.
// Constant tables, for any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/config/options.h"

namespace ostro::lab {

// The type of a parameter's value.
enum class ValueType {
  kText,      // a string
  kTexts,     // a list of strings
  kInteger,   // at least 1
  kShare,     // from 0 to 1, or null
  kRange,     // [low, high], each a number or null; or null
  kSettings,  // a map of dotted keys of a configuration and their values
  kStep,      // "$name": the output of a step
  kSteps,     // a map from names to "$name"
  kWords,     // a list of texts and numbers: the words of a command
  kNumber,    // above 0
  kFamilies,  // a list of "$name": the outputs of all steps that were declared under these names
  kParts,     // "$name", or a map from names to "$name", whose parameters are then PARAMETER.NAME
  kPhases,    // a list of phases of a training (phases.h)
};

struct Parameter {
  std::string name;
  ValueType type = ValueType::kText;
  std::string default_value;  // YAML flow text; empty: it is required, or left out where it is not given
  bool required = false;
  // For kStep: the kind of that step. A source's place can be taken by steps of the kinds run, extract and
  // corpus; "rows" are those, filter and quality.
  std::string of;
  std::string help;
  // kBits: another value is another output, so it is part of the fingerprint. kPlan: it says when the step is
  // done, and is in no fingerprint. kOutput: what is said of the same output, for instance in the record.
  config::Effect effect = config::Effect::kBits;
};

struct StepKind {
  std::string name;
  // Part of every fingerprint. It grows when the same parameters and inputs give another output.
  int64_t version = 1;
  std::string help;
  std::vector<Parameter> parameters;

  const Parameter* find(std::string_view parameter) const;
  // Whether its output is a run: train and fork.
  bool makes_run() const;
  // Whether its output can be the value of a parameter.
  bool fits(const Parameter& parameter) const;
  // Whether its output is verdicts on the rows of its parameter `from`.
  bool gives_verdicts() const { return name == "filter" || name == "quality"; }
  // Whether its output is a model for other programs: export and publish.
  bool gives_model() const;
};

// The kind of steps that run any program.
inline constexpr const char* kCommandKind = "run";
// The kind of trainings that begin with the state of another one.
inline constexpr const char* kForkKind = "fork";
// The kind of steps whose texts are drawn.
inline constexpr const char* kCorpusKind = "corpus";
// The kinds whose output is a model for other programs: a directory, and one with all that a stranger needs.
inline constexpr const char* kExportKind = "export";
inline constexpr const char* kPublishKind = "publish";

// "a text", "[least, most], each a number or null": what a value of this type is, for people.
const char* value_type_text(ValueType type);

std::span<const StepKind> step_kinds();
// The kinds that a parameter takes, for messages: "source, run or extract".
std::string kinds_that_fit(const Parameter& parameter);
// The kind of this name; null when there is none.
const StepKind* find_kind(std::string_view name);

}  // namespace ostro::lab
