#include "ostro/eval/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/chat/value/text.h"
#include "ostro/eval/tasks/match.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/functions.h"

namespace ostro::eval {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLn2 = 0.693147180559945309417232121458;

size_t best(const std::vector<double>& values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

// The probability of the right choice if one of the choices is right.
double share_of(const std::vector<double>& log_probs, size_t gold) {
  const double top = log_probs[best(log_probs)];
  double sum = 0;
  for (const double x : log_probs) sum += numerics::exp_f64(x - top);
  return numerics::exp_f64(log_probs[gold] - top) / sum;
}

// The measures of an entry, filled document by document.
class Measures {
 public:
  void add(const char* name, double numerator, double denominator = 1) {
    auto found = std::find_if(all_.begin(), all_.end(), [&](const Measure& m) { return m.name == name; });
    if (found == all_.end()) found = all_.insert(all_.end(), Measure{name, {}});
    found->samples.add(numerator, denominator);
  }
  // The figures that the last document added.
  Json last() const {
    Json out = Json::object();
    for (const Measure& m : all_) out[m.name] = m.samples.numerators.back() / m.samples.denominators.back();
    return out;
  }
  std::vector<Measure> take() { return std::move(all_); }

 private:
  std::vector<Measure> all_;
};

class Run {
 public:
  Run(const Suite& suite, TextModel& model, const SuiteOptions& options) : model_(model), options_(options) {
    for (const auto& corpus : suite.corpora)
      for (const std::string& text : corpus.texts) total_ += cost_of_text(text.size());
    for (const auto& task : suite.tasks) total_ += cost(task.questions);
  }

  Result<Entry> corpus(const Suite::Corpus& corpus) {
    Entry entry{corpus.name, "corpus", corpus.options.tags, corpus.hash, 0, 0, 0, {}};
    double cost = 0;
    for (const std::string& text : corpus.texts) cost += cost_of_text(text.size());
    const auto scores =
        model_.texts(corpus.texts, corpus.options.stride.value_or(0), progress(entry.name, cost));
    if (!scores.ok()) return scores.error().with_context("corpora." + entry.name);
    Measures measures;
    for (size_t i = 0; i < scores->size(); ++i) {
      const TextScore& score = (*scores)[i];
      measures.add("bits_per_byte", -score.log_prob / kLn2, static_cast<double>(score.bytes));
      measures.add("loss", -score.log_prob, static_cast<double>(score.tokens));
      ++entry.documents, entry.tokens += score.tokens, entry.bytes += score.bytes;
      RETURN_IF_ERROR(tell({{"corpus", entry.name},
                            {"document", i},
                            {"log_prob", score.log_prob},
                            {"tokens", score.tokens},
                            {"bytes", score.bytes},
                            {"measures", measures.last()}}));
    }
    entry.measures = measures.take();
    done_ += cost;
    return entry;
  }

  Result<Entry> task(const Suite::Task& task) {
    ASSIGN_OR_RETURN(const Questions questions, as_asked(task.questions));
    Entry entry{questions.name, "", prompt_options(questions.options).tags, task.hash, 0, 0, 0, {}};
    entry.documents = static_cast<int64_t>(questions.questions.size());
    Measures measures;
    Status status;
    if (const auto* choice = std::get_if<MultipleChoiceOptions>(&questions.options))
      status = multiple_choice(questions, *choice, entry, measures);
    else if (const auto* scored = std::get_if<LoglikelihoodOptions>(&questions.options))
      status = loglikelihood(questions, *scored, entry, measures);
    else
      status = generate(questions, std::get<GenerateOptions>(questions.options), entry, measures);
    RETURN_IF_ERROR(status);
    entry.measures = measures.take();
    done_ += cost(questions);
    return entry;
  }

 private:
  // What stands between a prompt and its answer. A chat template has written it.
  static std::string delimiter(const PromptOptions& options) {
    return options.apply_chat_template ? "" : options.target_delimiter;
  }
  // The questions with the prompts that the model gets.
  Result<Questions> as_asked(Questions questions) const {
    if (!prompt_options(questions.options).apply_chat_template) return questions;
    for (Question& q : questions.questions) {
      auto prompt = model_.chat().of_user(q.prompt);
      if (!prompt.ok())
        return prompt.error().with_context(fmt::format("tasks.{}.apply_chat_template", questions.name));
      q.prompt = std::move(*prompt);
    }
    return questions;
  }
  // About the tokens that are computed, for progress: a generated one is a step of its own.
  static double cost_of_text(size_t bytes) { return static_cast<double>(bytes) + 1; }
  static double cost(const Questions& questions) {
    double cost = 0;
    const auto* generate = std::get_if<GenerateOptions>(&questions.options);
    for (const Question& q : questions.questions) {
      const size_t times = std::max<size_t>(1, q.choices.size());
      cost += static_cast<double>(times) * cost_of_text(q.prompt.size());
      if (generate != nullptr) cost += 16 * static_cast<double>(generate->max_gen_toks);
    }
    return cost;
  }

  TextModel::Progress progress(const std::string& name, double cost) const {
    return [this, name, cost](size_t done, size_t total) {
      if (options_.progress)
        options_.progress(
            {name, (done_ + cost * static_cast<double>(done) / static_cast<double>(total)) / total_});
    };
  }

  Status tell(const Json& document) const {
    return options_.on_document
               ? options_.on_document(document.dump(-1, ' ', false, Json::error_handler_t::replace))
               : Status();
  }

  // Scores each choice after the prompt and, for mutual information, also without it: the second half of the
  // requests. The measures differ in the length by which a choice's log-probability is divided.
  Status multiple_choice(const Questions& questions, const MultipleChoiceOptions& options, Entry& entry,
                         Measures& measures) {
    entry.type = MultipleChoiceOptions::kType;
    std::vector<ContinuationRequest> requests;
    for (const bool conditional : {true, false})
      for (const Question& q : questions.questions)
        for (size_t i = 0; i < q.choices.size() && (conditional || options.mutual_information); ++i)
          requests.push_back({conditional ? q.prompt : "", delimiter(options) + q.choices[i],
                              fmt::format("tasks.{}: {}: choice {}", questions.name, q.place, i)});
    ASSIGN_OR_RETURN(const auto scores,
                     model_.continuations(requests, false, progress(questions.name, cost(questions))));
    size_t at = 0, alone = options.mutual_information ? scores.size() / 2 : 0;
    for (const Question& q : questions.questions) {
      std::vector<double> plain, by_characters, by_bytes, by_tokens, information;
      const auto gold = static_cast<size_t>(q.gold);
      for (size_t i = 0; i < q.choices.size(); ++i, ++at) {
        const ContinuationScore& score = scores[at];
        plain.push_back(score.log_prob);
        by_characters.push_back(score.log_prob / static_cast<double>(chat::jinja::length(q.choices[i])));
        by_bytes.push_back(score.log_prob / static_cast<double>(q.choices[i].size()));
        by_tokens.push_back(score.log_prob / static_cast<double>(score.tokens));
        if (options.mutual_information) information.push_back(score.log_prob - scores[alone++].log_prob);
        entry.tokens += score.tokens, entry.bytes += static_cast<int64_t>(q.choices[i].size());
      }
      const auto right = [&](const std::vector<double>& values) { return best(values) == gold ? 1.0 : 0.0; };
      measures.add("acc", right(plain));
      measures.add("acc_norm", right(by_characters));
      measures.add("acc_bytes", right(by_bytes));
      measures.add("acc_tokens", right(by_tokens));
      if (options.mutual_information) measures.add("acc_mutual_info", right(information));
      measures.add("choice_prob", share_of(plain, gold));
      measures.add("answer_bits_per_byte", -by_bytes[gold] / kLn2);
      RETURN_IF_ERROR(tell({{"task", questions.name},
                            {"document", q.place},
                            {"prompt", q.prompt},
                            {"choices", q.choices},
                            {"gold", q.gold},
                            {"log_probs", plain},
                            {"measures", measures.last()}}));
    }
    return {};
  }

  Status loglikelihood(const Questions& questions, const LoglikelihoodOptions& options, Entry& entry,
                       Measures& measures) {
    entry.type = LoglikelihoodOptions::kType;
    std::vector<ContinuationRequest> requests;
    for (const Question& q : questions.questions)
      requests.push_back({q.prompt, delimiter(options) + q.answers[0],
                          fmt::format("tasks.{}: {}", questions.name, q.place)});
    ASSIGN_OR_RETURN(const auto scores, model_.continuations(requests, model_.knows_greedy(),
                                                             progress(questions.name, cost(questions))));
    for (size_t i = 0; i < scores.size(); ++i) {
      const Question& q = questions.questions[i];
      const ContinuationScore& score = scores[i];
      if (score.greedy) measures.add("acc", *score.greedy ? 1.0 : 0.0);
      measures.add("log_likelihood", score.log_prob);
      measures.add("answer_bits_per_byte", -score.log_prob / kLn2 / static_cast<double>(q.answers[0].size()));
      entry.tokens += score.tokens, entry.bytes += static_cast<int64_t>(q.answers[0].size());
      RETURN_IF_ERROR(tell({{"task", questions.name},
                            {"document", q.place},
                            {"prompt", q.prompt},
                            {"target", q.answers[0]},
                            {"measures", measures.last()}}));
    }
    return {};
  }

  Status generate(const Questions& questions, const GenerateOptions& options, Entry& entry,
                  Measures& measures) {
    entry.type = GenerateOptions::kType;
    ASSIGN_OR_RETURN(const Matcher matcher, Matcher::create("tasks." + questions.name, options));
    const TextModel::Progress show = progress(questions.name, cost(questions));
    for (size_t i = 0; i < questions.questions.size(); ++i) {
      const Question& q = questions.questions[i];
      const auto made = model_.generate({q.prompt, options.until, options.max_gen_toks, options.temperature,
                                         static_cast<uint64_t>(options.seed)});
      if (!made.ok()) return made.error().with_context(fmt::format("tasks.{}: {}", questions.name, q.place));
      const auto answer = matcher.extract(made->text);
      const auto exact = answer.ok() ? matcher.exact(*answer, q.answers) : answer.error();
      if (!exact.ok())
        return exact.error().with_context(fmt::format("tasks.{}: {}", questions.name, q.place));
      measures.add("exact_match", *exact ? 1.0 : 0.0);
      if (options.numeric) measures.add("numeric_match", matcher.numeric(*answer, q.answers) ? 1.0 : 0.0);
      entry.tokens += made->tokens, entry.bytes += static_cast<int64_t>(made->text.size());
      show(i + 1, questions.questions.size());
      RETURN_IF_ERROR(tell({{"task", questions.name},
                            {"document", q.place},
                            {"prompt", q.prompt},
                            {"targets", q.answers},
                            {"generated", made->text},
                            {"stopped_by", stop_reason_name(made->reason)},
                            {"answer", *answer},
                            {"measures", measures.last()}}));
    }
    return {};
  }

  TextModel& model_;
  const SuiteOptions& options_;
  double done_ = 0, total_ = 0;
};

}  // namespace

Result<Measured> measure(const Suite& suite, TextModel& model, const SuiteOptions& options) {
  const numerics::HostArithmetic guard;
  Run run(suite, model, options);
  Measured out;
  for (const Suite::Corpus& corpus : suite.corpora) {
    ASSIGN_OR_RETURN(Entry entry, run.corpus(corpus));
    out.corpora.push_back(std::move(entry));
  }
  for (const Suite::Task& task : suite.tasks) {
    ASSIGN_OR_RETURN(Entry entry, run.task(task));
    out.tasks.push_back(std::move(entry));
  }
  return out;
}

}  // namespace ostro::eval
