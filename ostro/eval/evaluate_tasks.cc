#include "ostro/eval/evaluate_tasks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/eval/measure.h"
#include "ostro/eval/text_model_of.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::eval {
namespace {

// The checkpoints that are meant, in the order given; of a run with --all_checkpoints by ascending step.
Result<std::vector<std::string>> find_checkpoints(io::FileSystem& fs, const EvalTasksRequest& request) {
  if (!request.all_checkpoints) return request.checkpoints;
  std::vector<std::string> out;
  for (const std::string& run : request.checkpoints) {
    ASSIGN_OR_RETURN(const auto entries,
                     checkpoint::list_checkpoints(fs, io::join_path(run, checkpoint::kCheckpointsFolder)));
    if (entries.empty())
      return not_found(
          fmt::format("--all_checkpoints: {} is no run with checkpoints (no checkpoints/step-*)", run));
    for (const auto& entry : entries) out.push_back(entry.path);
  }
  return out;
}

class TasksSession {
 public:
  TasksSession(const Context& context, const EvalTasksRequest& request)
      : context_(context), fs_(context.fs), request_(request) {}

  Result<Report> run() {
    ASSIGN_OR_RETURN(const TaskFile file, load_task_file(request_.tasks));
    ASSIGN_OR_RETURN(const std::string text, fs_.read_file(request_.tasks));
    ASSIGN_OR_RETURN(const Suite suite, read_suite(fs_, file, request_.only, request_.limit));
    ASSIGN_OR_RETURN(const std::vector<std::string> checkpoints, find_checkpoints(fs_, request_));
    ASSIGN_OR_RETURN(const auto engine, context_.engine());
    Report report{request_.tasks, sha256_hex(text), {}};
    for (size_t i = 0; i < checkpoints.size(); ++i) {
      ASSIGN_OR_RETURN(trained::LoadedModel loaded,
                       trained::load_model(fs_, checkpoints[i], request_.tokenizer, context_.models,
                                           request_.trust, request_.use));
      ASSIGN_OR_RETURN(Evaluated one, evaluate(suite, std::move(loaded), *engine, static_cast<double>(i),
                                               static_cast<double>(checkpoints.size())));
      report.checkpoints.push_back(std::move(one));
    }
    context_.progress.end();
    return report;
  }

  const std::string& samples() const { return samples_; }

 private:
  Result<Evaluated> evaluate(const Suite& suite, trained::LoadedModel loaded, runtime::Engine& engine,
                             double number, double count) {
    Evaluated out{loaded.parameters.path, loaded.parameters.name, loaded.parameters.step, {}, {},
                  loaded.other_mp};
    SuiteOptions options;
    options.progress = [&](const SuiteProgress& p) {
      context_.progress.show(count > 1 ? fmt::format("step {}, {}", out.step, p.name) : p.name,
                             (number + p.done) / count);
    };
    const std::string mp = out.mp.empty() ? "" : ",\"mp\":\"" + out.mp + "\"";
    if (!request_.samples.empty())
      options.on_document = [&, mp](const std::string& json) {
        samples_ += "{\"checkpoint\":" + nlohmann::json(out.path).dump() + mp + "," + json.substr(1) + "\n";
        return Status();
      };
    ASSIGN_OR_RETURN(TextModel model, text_model(fs_, std::move(loaded), engine, request_.batch_tokens));
    ASSIGN_OR_RETURN(Measured measured, measure(suite, model, options));
    out.corpora = std::move(measured.corpora), out.tasks = std::move(measured.tasks);
    return out;
  }

  const Context& context_;
  io::FileSystem& fs_;
  const EvalTasksRequest& request_;
  std::string samples_;
};

}  // namespace

Result<Report> evaluate_tasks(const Context& context, const EvalTasksRequest& request) {
  if (request.batch_tokens < 1)
    return invalid_argument(fmt::format("--batch_tokens {}: use 1 or more", request.batch_tokens));
  if (request.limit && *request.limit < 1)
    return invalid_argument(fmt::format("--limit {}: use 1 or more", *request.limit));
  TasksSession session(context, request);
  ASSIGN_OR_RETURN(Report report, session.run());
  if (!request.out.empty())
    RETURN_IF_ERROR(io::write_file_atomically(context.fs, request.out, report_json(report)));
  if (!request.samples.empty())
    RETURN_IF_ERROR(io::write_file_atomically(context.fs, request.samples, session.samples()));
  return report;
}

}  // namespace ostro::eval
