// The program `ostro` with a deliberate fault in its arithmetic, for tests of equality, which must notice it.
//
// OSTRO_TEST_FAULT=NAME arms one fault for the life of the process: one of
// ostro/fleet/faulty_engine_for_test.h, or group_of_16 (gemm_halves.cc here). Without it the program
// computes what `ostro` computes.
#include <cstdlib>
#include <string>

#include "ostro/base/log.h"
#include "ostro/cli/main/cli_main.h"
#include "ostro/fleet/faulty_engine_for_test.h"
#include "tests/controls/gemm_halves.h"

int main(int argc, char** argv) {
  const char* variable = std::getenv("OSTRO_TEST_FAULT");
  std::string fault = variable == nullptr ? "" : variable;
  if (!fault.empty()) ostro::log_warning("test fault " + fault + ": this process computes wrong on purpose");
  if (fault == "group_of_16") {
    ostro::kernels::sum_in_halves();
    fault.clear();
  }
  return ostro::cli_main(argc, argv, ostro::models::builtin_models(),
                         [&](std::unique_ptr<ostro::runtime::Engine> right) {
                           return std::make_unique<ostro::fleet::FaultyEngine>(std::move(right), fault);
                         });
}
