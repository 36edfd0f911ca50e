#include "ostro/cli/main/cli_main.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "ostro/base/out_of_memory.h"
#include "ostro/cli/main/commands.h"
#include "ostro/cli/main/processor_check.h"
#include "ostro/config/options.h"
#include "ostro/shell/shared/process_context.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/shell/words/version.h"

namespace ostro {
namespace {

using namespace ostro::cli;

std::string help_text() {
  std::string text =
      "ostro: trains open foundation models; one run, one hash\n\n"
      "Usage: ostro COMMAND [words]\n\nCommands (each has --help):\n";
  for (const Command& command : commands()) text += fmt::format("  {:<12}{}\n", command.name, command.help);
  text +=
      "\nOptions:\n"
      "  -h, --help  print this and exit\n"
      "  --version   print the version and what this build leaves out, and exit\n"
      "\nExit codes: 0 done; 1 failed, told in one line \"error: ...\", or `verify`, `diff` or `inspect` "
      "found\n"
      "a difference; 2 a command line or configuration that makes no sense; `verify`: 3 incomplete, 4 "
      "cannot\n"
      "check; 75 training was stopped by a signal and saved, the same command goes on; 76 a worker lost its\n"
      "place among the workers, 77 it left them; a launcher may start another; 78 a coordinator ended alone "
      "(--replaced);\n79 the others have found a worker corrupt (trainer.cross_check).\n"
      "\nFirst steps:\n"
      "  ostro init texts/ && ostro train --config train.yaml    sizes for a folder of text, then the "
      "training\n"
      "  ostro verify runs/run                                   replay it, and compare the hashes\n"
      "Documents: docs/guide/first_run.md; all keys of a configuration: docs/reference/config.md\n";
  return text;
}

// Every program that has this file checks its processor before it does anything else.
[[gnu::section(".preinit_array"), gnu::used]] void (*const kBeforeAll)() = check_processor;

// The error for a first word that is no command.
Error unknown_command(const std::string& first, const std::vector<std::string>& names) {
  if (first.ends_with(".yaml") || first.ends_with(".yml"))
    return invalid_argument(fmt::format(
        "\"{0}\" is no command; to train with this configuration: ostro train --config {0}", first));
  if (const std::string meant = meant_command(first); !meant.empty())
    return invalid_argument(
        fmt::format("unknown command \"{}\"; it is: {} (see ostro --help)", first, meant));
  const std::string nearest = config::nearest_name(first, names);
  if (config::edit_distance(first, nearest) > std::max<size_t>(2, first.size() / 2))
    return invalid_argument(fmt::format("unknown command \"{}\" (see ostro --help)", first));
  return invalid_argument(
      fmt::format("unknown command \"{}\"; the nearest is \"{}\" (see ostro --help)", first, nearest));
}

int run_command(std::vector<std::string> words, const Context& context) {
  if (!words.empty() && words[0] == "help") {  // "help train" is "train --help"
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  const std::string first = words.empty() ? "" : words[0];
  if (first == "-h" || first == "--help") {
    std::fputs(help_text().c_str(), stdout);
    return kExitOk;
  }
  if (first == "--version") {
    std::fputs(version_text().c_str(), stdout);
    return kExitOk;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (first == command.name)
      return command.run(Args("ostro " + first, {words.begin() + 1, words.end()}, context));
    names.emplace_back(command.name);
  }
  if (first.empty()) {
    std::fputs(help_text().c_str(), stderr);
    return kExitUsage;
  }
  return report_error(unknown_command(first, names));
}

// glibc reserves 64 MiB of addresses for the small blocks of each thread. Under a limit of addresses
// (ulimit -v) they would be counted, and a few threads could take it all.
void share_small_blocks() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) mallopt(M_ARENA_MAX, 1);
}

// A standard stream that is closed would give its number to the next file that is opened, a run's chain for
// example, and what is printed would be written into that file.
void open_standard_streams() {
  for (int number = 0; number <= 2; ++number)
    if (fcntl(number, F_GETFD) < 0 && errno == EBADF)
      (void)!open("/dev/null", number == 0 ? O_RDONLY : O_WRONLY);  // takes the lowest free number: this one
}

// Whether standard output is a pipe or socket that is no longer read.
bool reader_has_left() {
  pollfd out{STDOUT_FILENO, 0, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

int cli_main(int argc, char** argv, models::ModelChoices models, const ReplaceEngine& replace) {
  open_standard_streams();
  share_small_blocks();
  end_on_out_of_memory(kExitFailed);
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is a failed write, which is checked below
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that would be larger than ulimit -f allows
  std::signal(SIGCHLD, SIG_DFL);  // where a parent ignores it, no program's status would be known
  PercentProgressLine line;
  const Context context = process_context(std::move(models), line, replace);
  int code = kExitFailed;
  try {
    code = run_command({argv + 1, argv + (argc > 0 ? argc : 1)}, context);
  } catch (const std::bad_alloc& e) {
    return report_error(out_of_memory_error(e));
  } catch (const std::exception& e) {
    return report_error(Error(ErrorCode::kInternal, e.what()));
  }
  const bool written = std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (!written && !reader_has_left())  // a reader that has what it wanted (head, less) is no failure
    return report_error(io_error("cannot write to standard output"));
  return code;
}

}  // namespace ostro
