#include "ostro/eval/tasks/prompts.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/eval/tasks/answer.h"
#include "ostro/eval/tasks/doc_template.h"
#include "ostro/numerics/permutation.h"

namespace ostro::eval {
namespace {

// A document as a prompt of its own, and the answer that follows it when it is an example.
struct Solved {
  Question question;
  std::string answer;
};

Result<std::vector<Solved>> solve(const std::vector<Document>& documents, const std::string& key,
                                  const TaskOptions& options) {
  ASSIGN_OR_RETURN(const DocTemplate text,
                   DocTemplate::parse(prompt_options(options).doc_to_text, key + ".doc_to_text"));
  ASSIGN_OR_RETURN(const AnswerMaker answers, AnswerMaker::create(key, options));
  std::vector<Solved> out;
  for (const Document& document : documents) {
    Solved solved;
    solved.question.place = document.place;
    ASSIGN_OR_RETURN(solved.question.prompt, text.text(document));
    RETURN_IF_ERROR(answers.fill(document, solved.question));
    const Question& q = solved.question;
    solved.answer = q.choices.empty() ? q.answers[0] : q.choices[static_cast<size_t>(q.gold)];
    out.push_back(std::move(solved));
  }
  return out;
}

// The numbers of the examples for document `number`: the first of a permutation that no other document has.
std::vector<int64_t> draw_examples(const PromptOptions& prompt, int64_t pool, int64_t number,
                                   bool is_in_pool) {
  numerics::Key key =
      numerics::fold_in(numerics::key_from_seed(static_cast<uint64_t>(prompt.fewshot_seed)), "fewshot");
  key = numerics::fold_in(key, static_cast<uint32_t>(number));
  const numerics::Permutation order(key, pool);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < pool && static_cast<int64_t>(out.size()) < prompt.num_fewshot; ++i)
    if (const int64_t example = order(i); !is_in_pool || example != number) out.push_back(example);
  return out;
}

}  // namespace

Result<Questions> make_questions(io::FileSystem& fs, const std::string& name, const TaskOptions& options) {
  const std::string key = "tasks." + name;
  const PromptOptions& prompt = prompt_options(options);
  const bool own_examples = prompt.num_fewshot > 0 && prompt.fewshot_files.empty();
  // Documents beyond the limit may be examples.
  ASSIGN_OR_RETURN(
      const std::vector<Document> documents,
      read_documents(fs, prompt.files, own_examples ? std::nullopt : prompt.limit, key + ".files"));
  ASSIGN_OR_RETURN(std::vector<Solved> solved, solve(documents, key, options));
  std::vector<Solved> other;
  if (prompt.num_fewshot > 0 && !own_examples) {
    ASSIGN_OR_RETURN(const std::vector<Document> rows,
                     read_documents(fs, prompt.fewshot_files, std::nullopt, key + ".fewshot_files"));
    ASSIGN_OR_RETURN(other, solve(rows, key, options));
  }
  const std::vector<Solved>& pool = own_examples ? solved : other;
  const auto usable = static_cast<int64_t>(pool.size()) - (own_examples ? 1 : 0);
  if (prompt.num_fewshot > usable)
    return config::option_error(
        key + ".num_fewshot",
        fmt::format("{}, but there are only {} documents to take examples from", prompt.num_fewshot, usable));
  Questions out{name, options, {}};
  for (int64_t i = 0; i < static_cast<int64_t>(solved.size()); ++i) {
    if (prompt.limit && i >= *prompt.limit) break;
    Question question = solved[static_cast<size_t>(i)].question;
    std::string begin = prompt.description;
    if (prompt.num_fewshot > 0)
      for (const int64_t e : draw_examples(prompt, static_cast<int64_t>(pool.size()), i, own_examples)) {
        const Solved& example = pool[static_cast<size_t>(e)];
        begin +=
            example.question.prompt + prompt.target_delimiter + example.answer + prompt.fewshot_delimiter;
      }
    question.prompt = begin + question.prompt;
    out.questions.push_back(std::move(question));
  }
  return out;
}

}  // namespace ostro::eval
