// read_suite, measure: measure a model on the corpora and tasks of a task file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/eval/report/results.h"
#include "ostro/eval/score/text_model.h"
#include "ostro/eval/tasks/prompts.h"

namespace ostro::eval {

// The documents and questions of a task file, read once for any number of models.
struct Suite {
  struct Corpus {
    std::string name;
    CorpusOptions options;
    std::vector<std::string> texts;
    std::string hash;
  };
  struct Task {
    Questions questions;
    std::string hash;
  };
  std::vector<Corpus> corpora;
  std::vector<Task> tasks;
};

// Reads all documents. `only`: names, or nodes above them; empty: all. `limit`: the largest number of
// documents of each. Errors: those of the files; a name in `only` that no corpus, task or node has.
Result<Suite> read_suite(io::FileSystem& fs, const TaskFile& file, const std::vector<std::string>& only,
                         std::optional<int64_t> limit);

struct SuiteProgress {
  std::string name;  // of the corpus or task
  double done = 0;   // of the whole suite, from 0 to 1
};

struct SuiteOptions {
  std::function<void(const SuiteProgress&)> progress;
  // Called with a JSON object for each document: the question, the answer and its score.
  std::function<Status(const std::string& json)> on_document;
};

struct Measured {
  std::vector<Entry> corpora, tasks;
};
// Measures the model on the suite. The results have the same bits for any batch size, number of threads and
// instruction set. Errors name the task and the document.
Result<Measured> measure(const Suite& suite, TextModel& model, const SuiteOptions& options);

}  // namespace ostro::eval
