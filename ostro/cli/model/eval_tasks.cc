#include "ostro/cli/model/eval_tasks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/cli/shared/engine_choice.h"
#include "ostro/cli/shared/progress.h"
#include "ostro/cli/shared/terminal.h"
#include "ostro/eval/measure.h"
#include "ostro/eval/report/report.h"
#include "ostro/eval/text_model_of.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/io/s3/routing_file_system.h"

namespace ostro::cli {
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

class Session {
 public:
  Session(io::FileSystem& fs, const EvalTasksRequest& request, const models::ModelChoices& models)
      : fs_(fs), request_(request), models_(models) {}

  Result<eval::Report> run() {
    ASSIGN_OR_RETURN(const eval::TaskFile file, eval::load_task_file(request_.tasks));
    ASSIGN_OR_RETURN(const std::string text, fs_.read_file(request_.tasks));
    ASSIGN_OR_RETURN(const eval::Suite suite, eval::read_suite(fs_, file, request_.only, request_.limit));
    ASSIGN_OR_RETURN(const std::vector<std::string> checkpoints, find_checkpoints(fs_, request_));
    ASSIGN_OR_RETURN(const auto engine, make_engine());
    eval::Report report{request_.tasks, sha256_hex(text), {}};
    for (size_t i = 0; i < checkpoints.size(); ++i) {
      ASSIGN_OR_RETURN(trained::LoadedModel loaded,
                       trained::load_model(fs_, checkpoints[i], request_.tokenizer, models_, request_.trust));
      ASSIGN_OR_RETURN(eval::Evaluated one,
                       evaluate(suite, std::move(loaded), *engine, static_cast<double>(i),
                                static_cast<double>(checkpoints.size())));
      report.checkpoints.push_back(std::move(one));
    }
    line_.end();
    return report;
  }

  const std::string& samples() const { return samples_; }

 private:
  Result<eval::Evaluated> evaluate(const eval::Suite& suite, trained::LoadedModel loaded,
                                   runtime::Engine& engine, double number, double count) {
    eval::Evaluated out{loaded.parameters.path, loaded.parameters.name, loaded.parameters.step, {}, {}};
    eval::SuiteOptions options;
    options.progress = [&](const eval::SuiteProgress& p) {
      line_.show(count > 1 ? fmt::format("step {}, {}", out.step, p.name) : p.name,
                 (number + p.done) / count);
    };
    if (!request_.samples.empty())
      options.on_document = [&](const std::string& json) {
        samples_ += "{\"checkpoint\":" + nlohmann::json(out.path).dump() + "," + json.substr(1) + "\n";
        return Status();
      };
    eval::TextModel model = eval::text_model(std::move(loaded), engine, request_.batch_tokens);
    ASSIGN_OR_RETURN(eval::Measured measured, eval::measure(suite, model, options));
    out.corpora = std::move(measured.corpora), out.tasks = std::move(measured.tasks);
    return out;
  }

  io::FileSystem& fs_;
  const EvalTasksRequest& request_;
  const models::ModelChoices& models_;
  PercentProgressLine line_;
  std::string samples_;
};

}  // namespace

Status evaluate_tasks(const EvalTasksRequest& request, const models::ModelChoices& models) {
  if (request.batch_tokens < 1)
    return invalid_argument(fmt::format("--batch_tokens {}: use 1 or more", request.batch_tokens));
  if (request.limit && *request.limit < 1)
    return invalid_argument(fmt::format("--limit {}: use 1 or more", *request.limit));
  io::FileSystem& fs = io::default_file_system();
  Session session(fs, request, models);
  ASSIGN_OR_RETURN(const eval::Report report, session.run());
  const std::string json = eval::report_json(report);
  if (!request.out.empty()) RETURN_IF_ERROR(io::write_file_atomically(fs, request.out, json));
  if (!request.samples.empty())
    RETURN_IF_ERROR(io::write_file_atomically(fs, request.samples, session.samples()));
  return write_stdout(request.json ? json : eval::report_table(report));
}

}  // namespace ostro::cli
