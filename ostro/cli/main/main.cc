#include "ostro/cli/main/cli_main.h"

int main(int argc, char** argv) { return ostro::cli_main(argc, argv); }
