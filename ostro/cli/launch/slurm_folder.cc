#include "ostro/cli/launch/slurm_folder.h"

#include <fmt/format.h>

#include <vector>

#include "ostro/cli/launch/bring_to_hosts.h"
#include "ostro/cluster/slurm/private_file.h"
#include "ostro/io/files/path.h"

namespace ostro::cli {
namespace {

// The last lines of what a job wrote.
std::string last_lines(io::FileSystem& fs, const std::string& file) {
  constexpr size_t kLines = 5;
  const auto text = fs.read_file(file);
  if (!text.ok()) return "";
  std::string out = *text;
  while (!out.empty() && out.back() == '\n') out.pop_back();
  size_t at = out.size();
  for (size_t n = 0; n < kLines && at != std::string::npos && at > 0; ++n) at = out.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? out : out.substr(at + 1);
}

}  // namespace

std::string slurm_job_file(const cluster::SlurmWorker& worker) {
  return io::join_path(worker.directory, "job.sh");
}

std::string slurm_worker_file(const cluster::SlurmWorker& worker) {
  return io::join_path(worker.directory, "worker.sh");
}

void print_slurm_scripts(const cluster::SlurmWorker& worker) {
  if (worker.spooled)
    return fmt::print(
        "# standard input of sbatch\n{}",
        cluster::batch_script(worker, "ADDRESS:PORT\n(OSTRO_* and AWS_*, with the job's secret)\n"));
  fmt::print("# {}\n{}\n# {}\n{}", slurm_job_file(worker), cluster::batch_script(worker),
             slurm_worker_file(worker), cluster::slurm_worker_script(worker));
}

Status make_slurm_folder(const SlurmCall& call, const cluster::SlurmWorker& worker, io::FileSystem& fs) {
  if (call.jobs.empty() && !worker.spooled) return fs.make_dirs(worker.directory);
  // Others may know this folder's name, and may write the one in which it lies.
  RETURN_IF_ERROR(fs.make_dirs(io::parent_path(worker.directory)));
  const Status made = cluster::make_private_folder(worker.directory);
  if (made.ok() || worker.spooled) return made;
  return made.error().with_context("--jobs");
}

Status bring_beside(const SlurmCall& call, const train::TrainConfig& config, const Context& context,
                    cluster::SlurmWorker& worker) {
  BringOptions options = call.bring;
  options.to = io::join_path(worker.directory, "copies");
  ASSIGN_OR_RETURN(const BroughtRun brought, brought_run(context, config, options));
  BringToHosts bringer(context.fs, brought.copy, {"this machine"}, [](size_t, const std::string& script) {
    return cluster::LineProcess::start({"sh", "-c", script});
  });
  const auto enough = [](const std::vector<bool>& has) { return has[0]; };
  if (!bringer.all(context.progress, enough)[0])
    return io_error(
        fmt::format("--bring: nothing could be copied to {}; what was said before names why", *options.to));
  worker.folder = brought.folder;
  worker.touched = io::join_path(brought.copy.place(), "list");
  worker.program = io::join_path(brought.copy.place(), brought.copy.program);
  return {};
}

std::string slurm_last_words(const cluster::SlurmWorker& worker, io::FileSystem& fs, const std::string& job) {
  if (worker.spooled)
    return fmt::format("(it is on its node, in {})", cluster::slurm_output_pattern(worker, job));
  return last_lines(fs, io::join_path(worker.directory, job + ".out"));
}

}  // namespace ostro::cli
