// make_questions: makes the prompts and answers of a task from its documents.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/eval/tasks/options.h"
#include "ostro/io/files/file_system.h"

namespace ostro::eval {

struct Question {
  std::string place;                 // of the document: "arc.jsonl:12"
  std::string prompt;                // description, examples and doc_to_text
  std::vector<std::string> choices;  // of a multiple_choice
  int64_t gold = 0;                  // the right one
  std::vector<std::string> answers;  // of the other types: at least one
};

struct Questions {
  std::string name;
  TaskOptions options;
  std::vector<Question> questions;  // at least one
};

// Reads the documents of a task and makes its questions. The examples of a document depend on fewshot_seed
// and on its number in its files; it is never an example of itself. Errors name the key and the document.
Result<Questions> make_questions(io::FileSystem& fs, const std::string& name, const TaskOptions& options);

}  // namespace ostro::eval
