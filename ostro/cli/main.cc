#include "ostro/cli/cli_main.h"

int main(int argc, char** argv) { return ostro::cli_main(argc, argv); }
