// ostro.h: the public header. A program of one's own includes it alone (examples/my_model).
//
// Array and its ops by name, jit, scan and cond (trace); derivatives (grad); layers (nn); what a model must
// offer (models); cli_main, which runs every command of `ostro` with the models that it is given (cli).
// Headers that it does not include are not installed, and may change.
#pragma once

#include "ostro/cli/main/cli_main.h"
#include "ostro/grad/value_and_grad.h"
#include "ostro/models/model_functions.h"
#include "ostro/models/model_options.h"
#include "ostro/nn/init.h"
#include "ostro/nn/linear.h"
#include "ostro/nn/moe.h"
#include "ostro/nn/norm.h"
#include "ostro/nn/rope.h"
#include "ostro/trace/control.h"
#include "ostro/trace/jit.h"
#include "ostro/trace/ops.h"
#include "ostro/trace/tree.h"
