// Slurm's queue as text, the decisions about jobs, and a job's scripts run by this machine's shell.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ostro/base/text_parts.h"
#include "ostro/cluster/slurm/batch_script.h"
#include "ostro/cluster/slurm/environment_file.h"
#include "ostro/cluster/slurm/places.h"
#include "ostro/cluster/slurm/private_file.h"
#include "ostro/cluster/slurm/queue.h"
#include "ostro/cluster/slurm/run_jobs.h"

namespace ostro::cluster {
namespace {

using std::chrono::seconds;
using SlurmLines = std::vector<std::string>;

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

// Places with the queue beside them, and a clock.
struct QueueOfPlaces {
  explicit QueueOfPlaces(const SlurmLimits& limits) : places(limits) {}
  // Submits what is due; returns how many that were.
  size_t submit() {
    const auto due = places.due(now);
    for (const size_t place : due) {
      places.submitted(place, std::to_string(++last));
      jobs.push_back({std::to_string(last), "PENDING", "None", ""});
    }
    return due.size();
  }
  SlurmLines set(size_t job, const char* state, const char* nodes = "", int64_t progress = 1) {
    jobs[job - 1].state = state;
    if (*nodes != '\0') jobs[job - 1].nodes = nodes;
    return places.look(jobs, progress, now);
  }

  SlurmPlaces places;
  SlurmPlaces::Clock::time_point now = SlurmPlaces::Clock::now();
  std::vector<SlurmJob> jobs;
  int last = 0;
};

TEST_CASE("a job that was taken away or left is replaced at once, a requeued one keeps its place") {
  QueueOfPlaces q({.least = 1, .count = 2});
  CHECK(q.submit() == 2);
  CHECK(q.places.waiting() == SlurmLines{"1", "2"});
  CHECK(q.set(1, "RUNNING", "n1") == SlurmLines{"job 1 runs on n1"});
  CHECK(q.set(2, "RUNNING", "n2") == SlurmLines{"job 2 runs on n2"});
  CHECK(q.set(1, "RUNNING").empty());
  CHECK(q.submit() == 0);
  CHECK(q.set(1, "PREEMPTED") == SlurmLines{"job 1 on n1 ended (PREEMPTED); another takes its place"});
  CHECK(q.submit() == 1);
  CHECK(q.set(2, "COMPLETED") == SlurmLines{"job 2 on n2: its workers have left; another takes its place"});
  CHECK(q.submit() == 1);
  CHECK(q.set(3, "RUNNING", "n3").size() == 1);
  q.jobs[2].reason = "BeginTime";
  CHECK(q.set(3, "PENDING") == SlurmLines{"job 3 was taken from n3 and waits for another start (BeginTime)"});
  CHECK(q.submit() == 0);
  CHECK(q.set(3, "RUNNING", "n1") == SlurmLines{"job 3 runs on n1"});
  q.jobs.pop_back();  // Slurm has forgotten job 4
  CHECK(q.places.look(q.jobs, 1, q.now) ==
        SlurmLines{"job 4 ended (forgotten by Slurm); another takes its place"});
  CHECK(!q.places.hopeless());
}

TEST_CASE("a job that fails is replaced after a rest, which doubles; one that a person cancelled is not") {
  QueueOfPlaces q({.least = 1, .count = 2, .rest = seconds(5), .most_rest = seconds(60)});
  q.submit();
  q.set(1, "RUNNING", "n1");
  for (const int rest : {5, 10, 20, 40, 60, 60}) {
    const auto lines = q.set(static_cast<size_t>(q.last), "FAILED", "n2");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].find(fmt::format("another is tried in {} s", rest)) != std::string::npos);
    q.now += seconds(rest - 1);
    CHECK(q.submit() == 0);
    q.now += seconds(1);
    CHECK(q.submit() == 1);
    CHECK(!q.places.hopeless());
  }
  CHECK(q.places.failed_job() == std::to_string(q.last - 1));
  CHECK(q.set(static_cast<size_t>(q.last), "CANCELLED").back().find("none takes its place") !=
        std::string::npos);
  CHECK(q.submit() == 0);
  CHECK(!q.places.too_few());
  q.set(1, "CANCELLED");
  CHECK(q.places.too_few());
}

TEST_CASE(
    "a run whose jobs fail before a step is given up when too few are left; later after three in a row") {
  QueueOfPlaces first({.least = 2, .count = 2});
  first.submit();
  first.set(1, "FAILED", "n1", 0);
  CHECK(first.places.hopeless() == "1 jobs are left, and 2 are needed");
  QueueOfPlaces later({.least = 2, .count = 2});
  later.submit();
  for (int i = 1; i <= 3; ++i) {
    CHECK(!later.places.hopeless());
    later.set(static_cast<size_t>(i == 1 ? 2 : later.last), "FAILED", "n2", 9);
    later.now += seconds(60);
    later.submit();
  }
  CHECK(later.places.hopeless() == "1 jobs are left, and 2 are needed");
  QueueOfPlaces fruitless({.least = 1, .count = 1, .replacements_without_progress = 3});
  for (int i = 1; i <= 4; ++i) {
    CHECK(!fruitless.places.hopeless());
    fruitless.submit();
    fruitless.set(static_cast<size_t>(i), "NODE_FAIL", "", 7);
  }
  CHECK(fruitless.places.hopeless() == "3 jobs were replaced already while no step was done");
}

TEST_CASE("a node on which jobs fail in a row is left out by the next ones, and tried again later") {
  QueueOfPlaces q(
      {.least = 1, .count = 2, .rest = seconds(5), .left_out_after = 2, .left_out_for = seconds(90)});
  q.submit();
  q.set(1, "RUNNING", "n1");
  for (int i = 0; i < 2; ++i) {
    CHECK(q.places.left_out(q.now).empty());
    q.set(static_cast<size_t>(q.last), "RUNNING", "n2");
    const auto lines = q.set(static_cast<size_t>(q.last), "FAILED");
    CHECK((lines.back() == "the next jobs leave out n2, where 2 in a row have failed, for 90 s") == (i == 1));
    q.now += seconds(15);
    if (i == 0) CHECK(q.submit() == 1);
  }
  CHECK(q.places.left_out(q.now) == SlurmLines{"n2"});
  CHECK(!q.places.hopeless());
  // The next job waits without n2, until its time is over.
  const size_t place = q.places.due(q.now).at(0);
  q.places.submitted(place, "4", q.places.left_out(q.now));
  q.jobs.push_back({"4", "PENDING", "Resources", ""});
  ++q.last;
  CHECK(q.set(4, "PENDING") == SlurmLines{"job 4 waits (Resources)"});
  q.now += seconds(74);
  CHECK(q.set(4, "PENDING").empty());
  q.now += seconds(1);
  CHECK(q.set(4, "PENDING") ==
        SlurmLines{"job 4 waits without n2, which is tried again: another takes its place"});
  CHECK(q.places.take_given_up() == SlurmLines{"4"});
  CHECK(q.places.left_out(q.now).empty());
  q.jobs[3].state = "CANCELLED";
  CHECK(q.submit() == 1);
  // One more failure is enough; but a job that ends well is forgiven all before it.
  q.set(5, "RUNNING", "n2");
  q.set(5, "FAILED");
  CHECK(q.places.left_out(q.now) == SlurmLines{"n2"});
  q.now += seconds(90);
  CHECK(q.submit() == 1);
  q.set(6, "RUNNING", "n2");
  q.set(6, "COMPLETED");
  CHECK(q.submit() == 1);
  q.set(7, "RUNNING", "n2");
  q.set(7, "FAILED");
  CHECK(q.places.left_out(q.now).empty());
  // Another job takes no harm from what failed elsewhere, and 0 leaves nothing out.
  LeftOutNodes none(0, seconds(9));
  for (int i = 0; i < 9; ++i) CHECK(!none.failed("n", q.now));
  CHECK(excluded_by("--mem=1G -x a,b --time 1") == "a,b");
  CHECK(excluded_by("--exclude=n[1-3] -N 1") == "n[1-3]");
  CHECK(excluded_by("--exclude c") == "c");
  CHECK(excluded_by("--exclusive --mem=2G").empty());
  for (const char* good :
       {"--mem=1G -x a,b --time 1", "--exclude=n[1-3]", "--exclude c", "--exclusive --export-file=a/b"})
    CHECK(check_excluded(good).ok());
  for (const auto& [options, says] : {std::pair("--mem=1G --exclud n1", "--exclud may stand for --exclude"),
                                      {"--exclude=\"n1,n2\"", "--exclude=\"n1,n2\" has quotes"},
                                      {"'-x' n1", "n1 has quotes"},
                                      {"-x './bad nodes'", "'./bad has quotes"},
                                      {"-x ./bad", "./bad is the path of a file"},
                                      {"--exclude=/etc/bad", "--exclude=/etc/bad is the path of a file"}}) {
    const Status status = check_excluded(options);
    REQUIRE(!status.ok());
    CHECK_MESSAGE(status.error().message().find(says) != std::string::npos, status.error().message());
  }
}

TEST_CASE(
    "a node is left out also when no look at the queue has seen its jobs run; a requeued job has none") {
  QueueOfPlaces q(
      {.least = 1, .count = 2, .rest = seconds(5), .left_out_after = 2, .left_out_for = seconds(90)});
  q.submit();
  q.set(1, "RUNNING", "n1");
  CHECK(q.set(2, "FAILED", "n2").back().find("job 2 on n2 ended with an error") == 0);
  q.now += seconds(15);
  CHECK(q.submit() == 1);
  CHECK(q.set(3, "FAILED", "n2").back() ==
        "the next jobs leave out n2, where 2 in a row have failed, for 90 s");
  CHECK(q.places.left_out(q.now) == SlurmLines{"n2"});
  // Job 1 is requeued, and fails elsewhere soon after, though it lived long before: its first node is not
  // blamed.
  q.now += seconds(61);
  q.set(1, "PENDING");
  q.jobs[0].nodes.clear();
  CHECK(q.set(1, "FAILED").back().find("job 1 ended with an error") == 0);
  for (const char* node : {"n3", "n1"}) {
    q.now += seconds(30);
    q.submit();
    q.set(static_cast<size_t>(q.last), "FAILED", node);
  }
  CHECK(std::ranges::count(q.places.left_out(q.now), "n1") == 0);
  // A job that was taken over has run for a while, too.
  for (const int lived : {61, 59}) {
    SlurmPlaces places({.least = 1, .count = 1, .left_out_after = 2});
    places.adopt({{"1", "RUNNING", "", "n1"}}, q.now);
    places.look({{"1", "FAILED", "", "n1"}}, 1, q.now + seconds(9));
    places.look({{"2", "RUNNING", "", "n1"}}, 1, q.now + seconds(9));
    places.look({{"2", "FAILED", "", "n1"}}, 1, q.now + seconds(9 + lived));
    CHECK(places.left_out(q.now + seconds(9 + lived)).size() == (lived < 60 ? 1 : 0));
  }
}

TEST_CASE("a job that the queue never lists is no job that was taken away") {
  QueueOfPlaces hidden({.least = 1, .count = 1});
  hidden.submit();
  CHECK(hidden.places.look({}, 0, hidden.now).empty());
  CHECK(hidden.submit() == 0);
  CHECK(!hidden.places.hopeless());
  hidden.now += seconds(30);
  hidden.places.look({}, 0, hidden.now);
  CHECK(hidden.submit() == 0);
  REQUIRE(hidden.places.hopeless());
  CHECK(hidden.places.hopeless()->find("Slurm does not list job 1") == 0);
  CHECK(hidden.places.alive() == SlurmLines{"1"});  // so that it is cancelled

  QueueOfPlaces other({.least = 1, .count = 2});  // where another job is listed it counts as failed
  other.submit();
  other.jobs.pop_back();
  other.set(1, "RUNNING", "n1");
  other.now += seconds(30);
  CHECK(other.places.look(other.jobs, 1, other.now).at(0).find("job 2 ended with an error (not listed") == 0);
  CHECK(other.places.take_given_up() == SlurmLines{"2"});
  CHECK(other.places.take_given_up().empty());
  CHECK(other.submit() == 0);
  CHECK(!other.places.hopeless());
}

TEST_CASE("a job of which sbatch told nothing takes a free place, once") {
  SlurmPlaces places({.least = 1, .count = 2});
  const auto now = SlurmPlaces::Clock::now();
  places.submitted(0, "1");
  places.refused(1, now);
  const std::vector<SlurmJob> queue = {{"1", "RUNNING", "", "n1"},
                                       {"7", "COMPLETING", "", ""},
                                       {"8", "PENDING", "", ""},
                                       {"9", "PENDING", "", ""}};
  CHECK(places.look(queue, 1, now).back() ==
        "job 8 of this run, of which sbatch told nothing, takes a place");
  CHECK(places.alive() == SlurmLines{"1", "8"});
  CHECK(places.look(queue, 1, now).empty());
  CHECK(places.any_runs());
}

TEST_CASE("jobs of an earlier launcher take places, those that run first") {
  SlurmPlaces places({.least = 1, .count = 2});
  CHECK(places.adopt({{"3", "PENDING", "", ""},
                      {"4", "FAILED", "", "n1"},
                      {"5", "RUNNING", "", "n2"},
                      {"7", "COMPLETING", "", "n3"},
                      {"6", "PENDING", "", ""}},
                     SlurmPlaces::Clock::now()) == SlurmLines{"6"});
  CHECK(places.alive() == SlurmLines{"5", "3"});
  CHECK(places.waiting() == SlurmLines{"3"});
  CHECK(places.due(SlurmPlaces::Clock::now()).empty());
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
  CHECK(hidden_from_slurm(environment) == SlurmLines{"OSTRO_JOB_SECRET", "AWS_KEY", "SLURM_JOB_ID",
                                                     "SBATCH_SIGNAL", "SBATCH_CLUSTERS", "SQUEUE_PARTITION",
                                                     "SCANCEL_STATE"});
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

TEST_CASE("the next launcher finds in the file for workers what the one before wrote") {
  std::string folder = std::filesystem::temp_directory_path() / "ostro slurm XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string file = folder + "/environment";
  CHECK(read_slurm_environment(file).port == 0);
  const char* const environment[] = {"AWS_KEY=1", "OSTRO_JOB_SECRET=of another job", nullptr};
  REQUIRE(write_slurm_environment(file, {"10.0.0.1", 4711, "s3cret"}, environment).ok());
  const SlurmEnvironment found = read_slurm_environment(file);
  CHECK(found.address == "10.0.0.1");
  CHECK(found.port == 4711);
  CHECK(found.secret == "s3cret");
  REQUIRE(write_slurm_environment(file, {"fd00::7", 4711, "s3cret"}, environment).ok());
  CHECK(read_slurm_environment(file).address == "fd00::7");
  CHECK(read_slurm_environment(file).port == 4711);
  // One that others can read may be theirs.
  REQUIRE(::chmod(file.c_str(), 0640) == 0);
  CHECK(read_slurm_environment(file).secret.empty());
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  CHECK(read_slurm_environment(file).secret == "s3cret");
  std::filesystem::create_symlink(file, folder + "/link");
  CHECK(read_slurm_environment(folder + "/link").secret.empty());
  std::ofstream(file) << "no address\n";
  CHECK(read_slurm_environment(file).port == 0);
  CHECK(read_slurm_environment(file).secret.empty());
  std::filesystem::remove_all(folder);
}

TEST_CASE("a folder for jobs is this user's alone, or is not taken") {
  std::string folder = std::filesystem::temp_directory_path() / "ostro slurm XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string inside = folder + "/run";
  const auto error = [&] {
    const Status made = make_private_folder(inside);
    return made.ok() ? std::string() : made.error().message();
  };
  CHECK(error().empty());
  struct stat found{};
  REQUIRE(::stat(inside.c_str(), &found) == 0);
  CHECK((found.st_mode & 07777U) == 0700);
  CHECK(error().empty());  // the next launcher's
  REQUIRE(::chmod(inside.c_str(), 0755) == 0);
  CHECK(error().empty());
  for (const mode_t mode : {0775U, 0757U, 01777U}) {
    REQUIRE(::chmod(inside.c_str(), mode) == 0);
    CHECK_MESSAGE(error().find("others can write the folder (mode ") != std::string::npos, error());
  }
  REQUIRE(::chmod(inside.c_str(), 0700) == 0);
  if (::geteuid() == 0) {
    REQUIRE(::chown(inside.c_str(), 65534, 65534) == 0);
    CHECK_MESSAGE(error().find("belongs to user 65534, and this is user 0") != std::string::npos, error());
  }
  std::filesystem::remove(inside);
  std::filesystem::create_directory_symlink(folder, inside);
  CHECK_MESSAGE(error().find("a link or a file") != std::string::npos, error());
  std::filesystem::remove_all(folder);
}

// A folder with a program that takes the worker's place, and the files of a job.
struct JobFolder {
  explicit JobFolder(const std::string& program) {
    folder = std::filesystem::temp_directory_path() / "ostro slurm's XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    std::ofstream(folder + "/run.sh") << "#!/bin/sh\necho run >> runs\n" << program;
    std::filesystem::permissions(folder + "/run.sh", std::filesystem::perms::owner_all);
    worker = {.name = "ostro-x",
              .folder = folder,
              .program = "./run.sh",
              .directory = folder,
              .words = {"--config", "it's.yaml"},
              .workers = 2,
              .if_interrupted = 75,
              .if_left = 77,
              .if_lost = 76};
    REQUIRE(write_private_file(slurm_environment_file(worker),
                               "10.0.0.1:4711\nAWS_KEY=a b='c'\nOSTRO_JOB_SECRET=s3cret\n\n")
                .ok());
  }
  ~JobFolder() { std::filesystem::remove_all(folder); }
  int run(const std::string& before = "") const {
    std::ofstream(folder + "/worker.sh") << slurm_worker_script(worker);
    const int status = std::system(
        fmt::format("SLURM_CPUS_PER_TASK=3 SLURM_LOCALID=1 exec env -u OSTRO_THREADS {} sh {} 2> {}", before,
                    shell_word(folder + "/worker.sh"), shell_word(folder + "/said"))
            .c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string read(const char* name) const {
    std::ifstream in(folder + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string folder;
  SlurmWorker worker;
};

TEST_CASE("a worker has its words, the secret and its cores; the file of secrets is its user's alone") {
  JobFolder job(
      "printf '%s\\n' \"$@\" > words; echo \"$OSTRO_JOB_SECRET $OSTRO_THREADS $AWS_KEY\" > settings; exit "
      "77\n");
  job.worker.gpu_each = true;
  CHECK(job.run() == 0);
  CHECK(job.read("words") ==
        "worker\n--coordinator\n10.0.0.1:4711\n--bind\nauto\n--config\nit's.yaml\n--device\ncuda:1\n");
  CHECK(job.read("settings") == "s3cret 3 a b='c'\n");
  struct stat file{};
  REQUIRE(::stat(slurm_environment_file(job.worker).c_str(), &file) == 0);
  CHECK((file.st_mode & 0777) == 0600);
  const std::string batch = batch_script(job.worker);
  for (const char* line : {"#SBATCH --nodes=1\n", "#SBATCH --ntasks=2\n", "#SBATCH --no-requeue\n",
                           "#SBATCH --signal=TERM@120\n", " --kill-on-bad-exit=1 "})
    CHECK(batch.find(line) != std::string::npos);
  job.worker.workers = 1;
  CHECK(batch_script(job.worker).find(" --kill-on-bad-exit=0 ") != std::string::npos);
  CHECK((batch + slurm_worker_script(job.worker)).find("s3cret") == std::string::npos);
}

TEST_CASE(
    "the slice of a job's workers is what Slurm says of its node; where it says nothing, that is an error") {
  const auto slice = [](const std::string& by, const std::string& said) {
    JobFolder job("printf '%s\\n' \"$@\" > words; exit 77\n");
    job.worker.slices = by;
    const std::string before = fmt::format("env -u SLURMD_NODENAME {} ", said);
    if (job.run(before) != 0) return "error: " + job.read("said");
    const std::string words = job.read("words");
    const size_t at = words.find("--slice\n");
    return at == std::string::npos ? std::string() : words.substr(at + 8, words.find('\n', at + 8) - at - 8);
  };
  CHECK(slice("", "").empty());
  CHECK(slice("partition", "SLURM_JOB_PARTITION='long west'") == "long west");
  CHECK(slice("node", "SLURMD_NODENAME=n7") == "n7");
  const std::string topology =
      "SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node SLURM_TOPOLOGY_ADDR=top.leaf-3.n7.site ";
  CHECK(slice("switch", topology + "SLURMD_NODENAME=n7.site") == "top.leaf-3");
  CHECK(slice("switch", "SLURM_TOPOLOGY_ADDR_PATTERN=node SLURM_TOPOLOGY_ADDR=n7 SLURMD_NODENAME=n7")
            .find("error: error: --slices switch: Slurm says none on ") == 0);
  CHECK(slice("partition", "").find("error: error: --slices partition: ") == 0);
}

TEST_CASE(
    "in place of a worker that is killed again and again five others are started; an error ends the job") {
  JobFolder killed("kill -KILL $$\n");
  CHECK(killed.run() == 137);
  CHECK(killed.read("runs") == "run\nrun\nrun\nrun\nrun\nrun\n");
  JobFolder failed("exit 3\n");
  CHECK(failed.run() == 3);
  CHECK(failed.read("runs") == "run\n");
  JobFolder saved("exit 75\n");
  CHECK(saved.run() == 0);
  JobFolder asked("kill -TERM $PPID; exit 76\n");  // one that was asked to leave ends no neighbour
  CHECK(asked.run() == 0);
  CHECK(asked.read("runs") == "run\n");
  JobFolder gone("exit 0\n");
  std::filesystem::remove(slurm_environment_file(gone.worker));
  CHECK(gone.run() == 1);
  CHECK(gone.read("said").find("no launcher waits for this job") != std::string::npos);
}

}  // namespace
}  // namespace ostro::cluster
