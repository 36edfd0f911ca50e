// A job's scripts, run by this machine's shell, and the files of a job, which are its user's alone.
#include "ostro/cluster/slurm/batch_script.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "ostro/base/text_parts.h"
#include "ostro/cluster/slurm/environment_file.h"
#include "ostro/cluster/slurm/private_file.h"

namespace ostro::cluster {
namespace {

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
  CHECK(found == SlurmEnvironment{"10.0.0.1", 4711, "s3cret"});
  CHECK(found != SlurmEnvironment{"10.0.0.1", 4712, "s3cret"});
  CHECK(found != SlurmEnvironment{"10.0.0.2", 4711, "s3cret"});
  CHECK(found != SlurmEnvironment{"10.0.0.1", 4711, "another"});
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
    "where nothing is shared one script has all; variables come on a worker's standard input, and in no "
    "words") {
  JobFolder job(
      "printf '%s\\n' \"$@\" > words; echo \"$OSTRO_JOB_SECRET $AWS_KEY\" > settings; cat > rest; exit 77\n");
  std::filesystem::remove(slurm_environment_file(job.worker));
  job.worker.spooled = true, job.worker.any_folder = true;
  const std::string variables = "10.0.0.1:4711\nAWS_KEY=a $b='c'\nOSTRO_JOB_SECRET=s3cret\n\n";
  std::ofstream(job.folder + "/job.sh") << batch_script(job.worker, variables);
  std::ofstream(job.folder + "/srun")
      << "#!/bin/sh\nwhile [ \"$1\" != sh ]; do shift; done\nprintf '%s\\n' \"$@\" > "
      << shell_word(job.folder + "/step") << "\nexec \"$@\"\n";
  std::filesystem::permissions(job.folder + "/srun", std::filesystem::perms::owner_all);
  const std::string pattern = fmt::format("ostro-x-7{}.", ::getpid());
  REQUIRE(std::system(fmt::format("PATH={}:$PATH SLURM_JOB_ID=7{} sh {}", shell_word(job.folder), ::getpid(),
                                  shell_word(job.folder + "/job.sh"))
                          .c_str()) == 0);
  CHECK(job.read("words") == "worker\n--coordinator\n10.0.0.1:4711\n--bind\nauto\n--config\nit's.yaml\n");
  CHECK(job.read("settings") == "s3cret a $b='c'\n");
  CHECK(job.read("rest").empty());
  CHECK(job.read("step").find("s3cret") == std::string::npos);
  int outputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/tmp"))
    if (entry.path().filename().string().starts_with(pattern)) {
      CHECK(entry.status().permissions() ==
            (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
      std::filesystem::remove(entry.path());
      ++outputs;
    }
  CHECK(outputs == 1);
  CHECK(slurm_output_pattern(job.worker, "7") == "/tmp/ostro-x-7.*");
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
