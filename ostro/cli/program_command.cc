// ostro program
#include <fmt/core.h>

#include <cstdio>

#include "ostro/cli/commands.h"
#include "ostro/cli/engine_choice.h"
#include "ostro/cli/exit_code.h"
#include "ostro/cli/plan_measure.h"
#include "ostro/cli/standard_streams.h"
#include "ostro/compile/explain_plan.h"
#include "ostro/compile/passes/pass.h"
#include "ostro/compile/plan.h"
#include "ostro/io/routing_file_system.h"
#include "ostro/ir/text.h"
#include "ostro/train/batches.h"
#include "ostro/train/programs.h"

namespace ostro::cli {
namespace {

struct Wish {
  std::string stage = "grad";
  bool explain = false, measure = false;
};

Result<std::string> plan_text(const ir::Program& program, const ir::Program& optimised, const Wish& wish,
                              const PlanTimes& times) {
  ASSIGN_OR_RETURN(const compile::Module module, compile::lower(optimised, {.reasons = wish.explain}));
  if (!wish.explain) return fmt::format("{}:\n{}", program.name, compile::print_plan(module));
  const compile::Measured measured = times.of(program.name);
  return compile::explain_plan(program.name, module, wish.measure ? &measured : nullptr);
}

// The leaf and the update program after the passes, or as the plan of what runs.
Result<std::string> compiled_text(const train::CanonicalPrograms& programs, const std::string& remat,
                                  int64_t vocab, const Wish& wish) {
  PlanTimes times;
  if (wish.measure) {
    ASSIGN_OR_RETURN(const auto engine, make_engine());
    ASSIGN_OR_RETURN(times, measure_plans(programs, *engine, remat, vocab));
  }
  std::string out;
  for (const ir::Program* program : {&programs.leaf, &programs.update}) {
    runtime::CompileOptions options;
    if (program == &programs.leaf) options.remat = remat;
    ASSIGN_OR_RETURN(const ir::Program optimised, compile::run_passes(*program, options));
    if (wish.stage == "plan") {
      ASSIGN_OR_RETURN(const std::string text, plan_text(*program, optimised, wish, times));
      out += text;
    } else {
      out += ir::print(optimised);
    }
    out += '\n';
  }
  return out;
}

Result<std::string> program_text(const train::TrainConfig& config, const Wish& wish) {
  ASSIGN_OR_RETURN(const auto tokenizer, train::open_tokenizer(io::default_file_system(), config));
  const models::ModelFunctions model =
      config.model_options().functions(tokenizer->vocab_size(), train::compute_dtype(config));
  if (wish.stage == "trace") return ir::print(train::make_eval_program(config, model));
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(config, model));
  if (wish.stage == "grad") return ir::print(programs.leaf) + "\n" + ir::print(programs.update);
  ASSIGN_OR_RETURN(const std::string remat, config.model_options().remat());
  return compiled_text(programs, remat, tokenizer->vocab_size(), wish);
}

Status check(const Wish& wish) {
  const std::string& s = wish.stage;
  if (s != "trace" && s != "grad" && s != "fused" && s != "plan")
    return invalid_argument(fmt::format("--stage {}: use trace, grad, fused or plan", s));
  if (wish.explain && s != "plan")
    return invalid_argument(fmt::format("--explain is about the plan: use it with --stage plan, not {}", s));
  if (wish.measure && !wish.explain)
    return invalid_argument("--measure adds to --explain: use both, with --stage plan");
  return Status();
}

}  // namespace

int program_command(Args args) {
  Wish wish;
  args.summary("Prints the programs of a training step.");
  args.option("--stage", &wish.stage, "S",
              "trace: a leaf's losses, as the model says them; grad (the default): the canonical leaf and "
              "update programs; fused: both after the compiler's passes; plan: steps, kernels and memory");
  args.flag("--explain", &wish.explain,
            "with --stage plan: what each step costs, which ops were fused into it, and why others were not");
  args.flag("--measure", &wish.measure,
            "with --explain: run some steps, and add times and how near they come to the machine's limits");
  args.config();
  if (const auto code = args.parse()) return *code;
  if (const Status s = check(wish); !s.ok()) return report_error(s.error());
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto text = program_text(*config, wish);
  if (!text.ok()) return report_error(text.error());
  const Status written = write_stdout(*text);
  return written.ok() ? kExitOk : report_error(written.error());
}

}  // namespace ostro::cli
