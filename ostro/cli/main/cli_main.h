// cli_main: the whole `main` of the `ostro` program, and of a program with models or an engine of its own.
#pragma once

#include <functional>
#include <memory>

#include "ostro/models/model_choices.h"
#include "ostro/runtime/engine.h"

namespace ostro {

// Takes an engine and returns the one that commands use in its place.
using ReplaceEngine = std::function<std::unique_ptr<runtime::Engine>(std::unique_ptr<runtime::Engine>)>;

// Runs one command and returns the exit code (shell/words/exit_code.h); errors are printed. `models` are the
// choices of model.type. `replace` gets every engine that is made as OSTRO_EXECUTOR says, and returns the one
// to use; when it is empty, that engine is used.
int cli_main(int argc, char** argv, models::ModelChoices models = models::builtin_models(),
             const ReplaceEngine& replace = {});

}  // namespace ostro
