// ostro program
#include <fmt/core.h>

#include <cstdio>

#include "ostro/cli/commands.h"
#include "ostro/cli/exit_code.h"
#include "ostro/cli/standard_streams.h"
#include "ostro/compile/explain_plan.h"
#include "ostro/compile/passes/pass.h"
#include "ostro/compile/plan.h"
#include "ostro/io/local_file_system.h"
#include "ostro/ir/text.h"
#include "ostro/train/batches.h"
#include "ostro/train/programs.h"

namespace ostro::cli {
namespace {

// The leaf and the update program after the passes, or as the plan of what runs.
Result<std::string> compiled_text(const train::CanonicalPrograms& programs, const std::string& remat,
                                  bool plan, bool why) {
  std::string out;
  for (const ir::Program* program : {&programs.leaf, &programs.update}) {
    runtime::CompileOptions options;
    if (program == &programs.leaf) options.remat = remat;
    ASSIGN_OR_RETURN(const ir::Program optimised, compile::run_passes(*program, options));
    if (plan) {
      ASSIGN_OR_RETURN(const compile::Module module, compile::lower(optimised, {.reasons = why}));
      out += why ? compile::explain_plan(program->name, module)
                 : fmt::format("{}:\n{}", program->name, compile::print_plan(module));
    } else {
      out += ir::print(optimised);
    }
    out += '\n';
  }
  return out;
}

Result<std::string> program_text(const train::TrainConfig& config, const std::string& stage, bool why) {
  ASSIGN_OR_RETURN(const auto tokenizer, train::open_tokenizer(io::local_file_system(), config));
  const models::ModelFunctions model =
      config.model_options().functions(tokenizer->vocab_size(), train::compute_dtype(config));
  if (stage == "trace") return ir::print(train::make_eval_program(config, model));
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(config, model));
  if (stage == "grad") return ir::print(programs.leaf) + "\n" + ir::print(programs.update);
  ASSIGN_OR_RETURN(const std::string remat, config.model_options().remat());
  return compiled_text(programs, remat, stage == "plan", why);
}

}  // namespace

int program_command(Args args) {
  std::string stage = "grad";
  args.summary("Prints the programs of a training step.");
  args.option("--stage", &stage, "S",
              "trace: a leaf's losses, as the model says them; grad (the default): the canonical leaf and "
              "update programs; fused: both after the compiler's passes; plan: steps, kernels and memory");
  bool why = false;
  args.flag("--explain", &why,
            "with --stage plan: what each step costs, which ops were fused into it, and why others were not");
  args.config();
  if (const auto code = args.parse()) return *code;
  if (stage != "trace" && stage != "grad" && stage != "fused" && stage != "plan")
    return report_error(invalid_argument(fmt::format("--stage {}: use trace, grad, fused or plan", stage)));
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const auto text = program_text(*config, stage, why);
  if (!text.ok()) return report_error(text.error());
  const Status written = write_stdout(*text);
  return written.ok() ? kExitOk : report_error(written.error());
}

}  // namespace ostro::cli
