// ostro program
#include <fmt/core.h>

#include <vector>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/model/plan_measure.h"
#include "ostro/compile/passes/pass.h"
#include "ostro/ir/text/text.h"
#include "ostro/runtime/inspector.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/step.h"

namespace ostro::cli {
namespace {

struct ProgramRequest {
  std::string stage = "grad";
  bool explain = false, measure = false;
};

// A program of the step and how a run of one worker compiles it.
struct StepProgram {
  const ir::Program* program;
  runtime::CompileOptions options;
};

std::vector<StepProgram> step_programs(const train::CanonicalPrograms& programs, const std::string& remat) {
  return {{&programs.leaf, train::leaf_options(remat)}, {&programs.update, train::update_options(programs)}};
}

Result<std::string> fused_text(const train::CanonicalPrograms& programs, const std::string& remat) {
  std::string out;
  for (const StepProgram& part : step_programs(programs, remat)) {
    ASSIGN_OR_RETURN(const ir::Program optimised, compile::run_passes(*part.program, part.options));
    out += ir::print(optimised) + '\n';
  }
  return out;
}

// What the engine that a run would use makes of the programs.
Result<std::string> plan_text(const Context& context, const train::CanonicalPrograms& programs,
                              const std::string& remat, int64_t vocab, const ProgramRequest& request) {
  ASSIGN_OR_RETURN(const auto engine, context.engine());
  runtime::Inspector* const inspector = engine->inspector();
  if (inspector == nullptr)
    return unsupported(
        fmt::format("the engine \"{}\" has no plan; use OSTRO_EXECUTOR=compiled", engine->info().name));
  PlanTimes times;
  if (request.measure) {
    ASSIGN_OR_RETURN(times, measure_plans(programs, *engine, *inspector, remat, vocab));
  }
  std::string out = fmt::format("engine: {}\n", engine->info().name);
  for (const StepProgram& part : step_programs(programs, remat)) {
    const runtime::Measured measured = times.of(part.program->name);
    ASSIGN_OR_RETURN(const std::string text, request.explain
                                                 ? inspector->explain(*part.program, part.options,
                                                                      request.measure ? &measured : nullptr)
                                                 : inspector->plan(*part.program, part.options));
    out += text + '\n';
  }
  return out;
}

Result<std::string> program_text(const Context& context, const train::TrainConfig& config,
                                 const ProgramRequest& request) {
  ASSIGN_OR_RETURN(const auto tokenizer, train::open_tokenizer(context.fs, config));
  const models::ModelFunctions model = train::run_model(config, tokenizer->vocab_size());
  RETURN_IF_ERROR(train::check_vocabulary(model, tokenizer->vocab_size()));
  if (request.stage == "trace") return ir::print(train::make_eval_program(config, model));
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(config, model));
  if (request.stage == "grad") return ir::print(programs.leaf) + "\n" + ir::print(programs.update);
  if (request.stage == "canonical") return train::canonical_text(programs);
  ASSIGN_OR_RETURN(const std::string remat, config.model_options().remat());
  if (request.stage == "fused") return fused_text(programs, remat);
  return plan_text(context, programs, remat, tokenizer->vocab_size(), request);
}

Status check(const ProgramRequest& request) {
  const std::string& s = request.stage;
  if (s != "trace" && s != "grad" && s != "canonical" && s != "fused" && s != "plan")
    return invalid_argument(fmt::format("--stage {}: use trace, grad, canonical, fused or plan", s));
  if (request.explain && s != "plan")
    return invalid_argument(fmt::format("--explain is about the plan: use it with --stage plan, not {}", s));
  if (request.measure && !request.explain)
    return invalid_argument("--measure adds to --explain: use both, with --stage plan");
  return Status();
}

}  // namespace

int program_command(Args args) {
  ProgramRequest request;
  args.summary("Prints the programs of a training step.");
  args.option("--stage", &request.stage, "S",
              "trace: a leaf's losses, as the model says them; grad (the default): the canonical leaf and "
              "update programs; canonical: these and that of the initial state without names, as the hash in "
              "the chain is taken of them; fused: leaf and update after the compiler's passes; plan: steps, "
              "kernels and memory");
  args.flag("--explain", &request.explain,
            "with --stage plan: what each step costs, which ops were fused into it, and why others were not");
  args.flag("--measure", &request.measure,
            "with --explain: run some steps, and add times and how near they come to the machine's limits");
  args.config();
  if (const auto code = args.parse()) return *code;
  if (const Status s = check(request); !s.ok()) return report_error(s.error());
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto text = program_text(args.context(), *config, request);
  if (!text.ok()) return report_error(text.error());
  return exit_after(write_stdout(*text));
}

}  // namespace ostro::cli
