// Slurm's queue as text, what is asked of Slurm, and a run over a small Slurm: shell scripts in the places of
// its programs.
#include "ostro/cluster/slurm/queue.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/base/text_parts.h"
#include "ostro/cluster/slurm/batch_script.h"
#include "ostro/cluster/slurm/end_jobs.h"
#include "ostro/cluster/slurm/run_jobs.h"

namespace ostro::cluster {
namespace {

TEST_CASE("lines of squeue are read, others are passed over") {
  const auto jobs =
      parse_queue("squeue: warning\n12|RUNNING|None|n1\n13|PENDING|Resources|\n14_1|RUNNING|None|n2\n15\n");
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].nodes == "n1");
  CHECK(jobs[1].id == "13");
  CHECK(jobs[1].reason == "Resources");
  CHECK(parse_submission("sbatch: a remark\n17\n") == "17");
  CHECK(parse_submission("18;cluster\n") == "18");
  CHECK(parse_submission("sbatch: error\n").empty());
  CHECK(fate_of("COMPLETING") == SlurmFate::kRuns);
  CHECK(fate_of("A_WORD_OF_ANOTHER_SLURM") == SlurmFate::kRuns);
}

TEST_CASE("options of sbatch that the launcher sets are named with what sets them") {
  CHECK(check_sbatch_options("--partition=long -A a1 --time 4:00:00 --gres=gpu:1").ok());
  for (const auto& [options, says] : {std::pair("-N4", "use --nodes"),
                                      {"--time=1 --ntasks 3", "use --workers_per_node"},
                                      {"--no-requeue", "use --requeue"},
                                      {"--output=x", "is set by `ostro launch slurm` itself"},
                                      {"-M other", "is set by `ostro launch slurm` itself"},
                                      {"--clusters=other", "is set by `ostro launch slurm` itself"},
                                      {"--open-mode=truncate", "is set by `ostro launch slurm` itself"},
                                      {"--export-file=x", "is set by `ostro launch slurm` itself"},
                                      {"--mem=1G --node=4", "--node=4 may stand for --nodes"},
                                      {"--sig TERM@9", "--sig may stand for --signal"},
                                      {"--time=1 '--nod\\es'=4", "'--nod\\es'=4 is set by"},
                                      {"--mem=1G\n--x", "line feed"}}) {
    const Status status = check_sbatch_options(options);
    REQUIRE(!status.ok());
    CHECK(status.error().message().find(says) != std::string::npos);
  }
}

TEST_CASE("a folder's name that a script cannot hold is refused") {
  CHECK(check_slurm_directory("/a b/it's").ok());
  CHECK(!check_slurm_directory("/a\n#SBATCH --nodes=4").ok());
}

TEST_CASE("variables with secrets, and those that change the launcher's options, are hidden from Slurm") {
  const char* environment[] = {"PATH=/bin",
                               "OSTRO_JOB_SECRET=a=b",
                               "AWS_KEY=x",
                               "SLURM_JOB_ID=1",
                               "SLURM_CONF=/etc/s",
                               "SBATCH_ACCOUNT=a1",
                               "SBATCH_SIGNAL=9@9",
                               "SBATCH_CLUSTERS=c",
                               "SQUEUE_PARTITION=p1",
                               "SCANCEL_STATE=R",
                               nullptr};
  CHECK(hidden_from_slurm(environment) ==
        std::vector<std::string>{"OSTRO_JOB_SECRET", "AWS_KEY", "SLURM_JOB_ID", "SBATCH_SIGNAL",
                                 "SBATCH_CLUSTERS", "SQUEUE_PARTITION", "SCANCEL_STATE"});
}

// Programs in the places of Slurm's, first on PATH: sbatch puts a job into the file `queue`, scancel takes
// all out of it when it is called for the time `scancels`.
struct SmallSlurm {
  explicit SmallSlurm(int scancels) {
    folder = std::filesystem::temp_directory_path() / "ostro-slurm-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    program("sbatch", "echo '1|RUNNING|None|n1' > queue; echo 1");
    program("squeue", "[ -z \"$SQUEUE_PARTITION\" ] || exit 0; [ ! -e queue ] || cat queue");
    program("scancel", fmt::format("echo \"$*\" >> cancelled; [ $(wc -l < cancelled) -lt {} ] || rm -f queue",
                                   scancels));
    path = std::getenv("PATH");
    ::setenv("PATH", (folder + ":" + path).c_str(), 1);
    ::setenv("SQUEUE_PARTITION", "other", 1);
  }
  ~SmallSlurm() {
    ::setenv("PATH", path.c_str(), 1);
    ::unsetenv("SQUEUE_PARTITION");
    std::filesystem::remove_all(folder);
  }
  void program(const std::string& name, const std::string& text) const {
    std::ofstream(folder + "/" + name) << "#!/bin/sh\ncd " << shell_word(folder) << " || exit 1\n"
                                       << text << "\n";
    std::filesystem::permissions(folder + "/" + name, std::filesystem::perms::owner_all);
  }
  std::string cancelled() const {
    std::ifstream in(folder + "/cancelled");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string folder, path;
};

TEST_CASE("a run that is to stop waits for workers of jobs that run, unless it is hurried; no job is left") {
  const SmallSlurm slurm(2);  // the first scancel is lost
  const SlurmQueue queue("x", hidden_from_slurm(environ));
  int looks = 0, members = 0;
  bool stopping = false, hurried = false;
  SlurmRun run;
  run.limits = {.least = 1, .count = 1};
  run.queue = &queue;
  run.script = "job.sh";
  run.look = [&] { ++looks; };
  run.events = [&] { return looks; };
  run.progress = [] { return 1; };
  run.members = [&] { return members; };
  run.over = []() -> std::optional<int> { return std::nullopt; };
  run.stopping = [&] { return stopping = looks > 30; };  // the queue was seen before
  run.hurried = [&] { return hurried = looks > 60; };
  run.stop = [] {};
  const auto code = run_slurm_jobs(run);
  REQUIRE(code.ok());
  CHECK(*code == 75);
  CHECK(stopping);
  CHECK(hurried);  // no worker has connected; without waiting for them the run would be over before
  CHECK(slurm.cancelled() == "--quiet 1\n--quiet 1\n");
  CHECK(!std::filesystem::exists(slurm.folder + "/queue"));
}

TEST_CASE("jobs that know another launcher are cancelled, and what ends by itself is left alone") {
  const SmallSlurm slurm(1);
  const SlurmQueue queue("x", hidden_from_slurm(environ));
  const auto lists = [&](const char* jobs) { std::ofstream(slurm.folder + "/queue") << jobs; };
  CHECK(end_strange_jobs(queue).ok());
  lists("1|COMPLETING|None|n1\n2|COMPLETED|None|n2\n3|CANCELLED|None|\n");
  CHECK(end_strange_jobs(queue).ok());
  CHECK(slurm.cancelled().empty());
  lists("1|COMPLETING|None|n1\n4|RUNNING|None|n1\n5|PENDING|Resources|\n");
  CHECK(end_strange_jobs(queue).ok());
  CHECK(slurm.cancelled() == "--quiet 4 5\n");
  CHECK(!std::filesystem::exists(slurm.folder + "/queue"));
  slurm.program("squeue", "echo no answer >&2; exit 1");
  const Status unread = end_strange_jobs(queue);
  REQUIRE(!unread.ok());
  CHECK(unread.error().message().find("no answer") != std::string::npos);
}

}  // namespace
}  // namespace ostro::cluster
