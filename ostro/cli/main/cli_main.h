// cli_main: the whole `main` of the `ostro` program, and of a program with models of its own.
#pragma once

#include "ostro/models/model_choices.h"

namespace ostro {

// Runs one command and returns the exit code (cli/main/exit_code.h). `models` are the choices of model.type.
int cli_main(int argc, char** argv, models::ModelChoices models = models::builtin_models());

}  // namespace ostro
