#include "ostro/board/refusal.h"

namespace ostro::board {

const char* rule_name(Rule rule) {
  switch (rule) {
    case Rule::kNotABundle: return "not a bundle";
    case Rule::kBundle: return "bundle";
    case Rule::kCannotCheck: return "cannot check";
    case Rule::kCopy: return "copy";
    case Rule::kTokenizer: return "tokenizer";
    case Rule::kData: return "data";
    case Rule::kEvaluationText: return "evaluation text";
    case Rule::kStart: return "start";
    case Rule::kEnd: return "end";
    case Rule::kConstants: return "constants";
    case Rule::kFlops: return "flops";
    case Rule::kScoreFlops: return "score flops";
    case Rule::kMemory: return "memory";
    case Rule::kScoreProgram: return "score program";
    case Rule::kBatch: return "batch";
    case Rule::kReplay: return "replay";
    case Rule::kNotFinite: return "not finite";
    case Rule::kLooksAhead: return "looks ahead";
    case Rule::kNotACode: return "not a code";
  }
  return "";
}

bool is_of_machine(Rule rule) { return rule == Rule::kMemory || rule == Rule::kCannotCheck; }

}  // namespace ostro::board
