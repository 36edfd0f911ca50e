#include "ostro/monitor/run_metrics.h"

#include <sys/statvfs.h>

#include <algorithm>

#include "ostro/cluster/watch/cluster_file.h"
#include "ostro/http/prometheus_text.h"
#include "ostro/io/files/path.h"

namespace ostro::monitor {
namespace {

using http::PrometheusText;

double of(int64_t count) { return static_cast<double>(count); }

void add_steps(const run::Meters& m, PrometheusText& out) {
  out.gauge("ostro_train_step", "Steps that led to the present state.", of(m.step));
  out.gauge("ostro_train_target_steps", "Length of the run in steps.", of(m.total));
  if (m.ended > 0) {
    out.gauge("ostro_train_last_step_timestamp_seconds", "Unix time at which the newest step ended.",
              m.ended);
    out.gauge("ostro_train_loss", "Loss of the newest step.", m.loss);
    out.gauge("ostro_train_gradient_norm", "Norm of its gradients.", m.gradient_norm);
    out.gauge("ostro_train_learning_rate", "Its learning rate.", m.learning_rate);
    out.gauge("ostro_train_tokens_per_second", "Tokens with a loss that are trained on in a second.",
              m.tokens_per_second);
    out.gauge("ostro_train_last_step_duration_seconds", "Time of the newest step.", m.step_seconds);
    out.gauge("ostro_train_last_step_data_wait_seconds", "Time for which it waited for its batch.",
              m.data_seconds);
    out.gauge("ostro_train_last_step_checkpoint_wait_seconds",
              "Time for which training waited for a checkpoint after it.", m.save_seconds);
    out.gauge("ostro_train_processes", "Processes that share a step.", of(m.processes));
  }
  if (m.held_out_loss) {
    out.gauge("ostro_train_held_out_loss", "Loss on held-out text at the newest evaluation.",
              *m.held_out_loss);
    out.gauge("ostro_train_held_out_step", "Step of that evaluation.", of(m.held_out_step));
  }
  out.histogram("ostro_train_step_duration_seconds", "Times of steps, also of those that were done again.",
                run::StepTimes::kLimits, m.steps.at_most, m.steps.count, m.steps.sum);
  if (m.checked_leaves == 0) return;
  out.counter("ostro_train_cross_checked_leaves_total", "Leaves that two workers computed.",
              of(m.checked_leaves));
  out.counter("ostro_train_cross_check_seconds_total",
              "Time of the leading process in computing leaves again and comparing.", m.check_seconds);
}

void add_saves(const run::Meters& m, PrometheusText& out) {
  out.counter("ostro_train_checkpoints_total", "Checkpoints that were written.", of(m.saves));
  out.counter("ostro_train_checkpoint_bytes_total", "Bytes of their arrays.", m.save_bytes);
  out.counter("ostro_train_checkpoint_write_seconds_total", "Time of writing them, beside the steps.",
              m.save_write_seconds);
  if (m.saves == 0) return;
  out.gauge("ostro_train_last_checkpoint_step", "Step of the newest checkpoint.", of(m.last_save_step));
  out.gauge("ostro_train_last_checkpoint_timestamp_seconds", "Unix time at which it was known to be whole.",
            m.last_save);
  out.gauge("ostro_train_last_checkpoint_bytes", "Bytes of its arrays.", m.last_save_bytes);
  out.gauge("ostro_train_last_checkpoint_write_seconds", "Time of writing it.", m.last_save_seconds);
}

void add_goodput(const run::GoodputTotals& totals, PrometheusText& out) {
  out.counter("ostro_train_tokens_total", "Tokens with a loss in the steps that advanced the run.",
              totals.tokens);
  out.gauge("ostro_train_goodput_ratio", "Share of the run's time in steps that advanced it.",
            totals.share());
  out.family("ostro_train_time_seconds_total", "counter", "The run's time by use; step is what advanced it.");
  for (size_t i = 0; i < kTimeUses; ++i) out.sample(totals.seconds[i], {{"use", kTimeUseNames[i]}});
  out.counter("ostro_train_worker_seconds_total", "The same time, times the number of workers.",
              totals.worker_seconds);
}

void add_job(const cluster::JobState& job, bool counts, PrometheusText& out) {
  int64_t straggles = 0, between_slices = 0, most = 0, fewest = 0;
  for (const cluster::MemberState& m : job.members) {
    straggles += m.straggles ? 1 : 0;
    between_slices += m.progress.bytes_between_slices;
    if (m.rank < 0 || m.progress.work == 0) continue;
    most = std::max(most, m.progress.work);
    fewest = fewest == 0 ? m.progress.work : std::min(fewest, m.progress.work);
  }
  out.gauge("ostro_train_workers", "Workers in the present epoch of membership.",
            of(job.goes_on ? job.size() : 0));
  out.gauge("ostro_train_workers_connected", "Workers that are connected, also those that wait.",
            of(static_cast<int64_t>(job.members.size())));
  out.gauge("ostro_train_workers_straggling", "Workers that compute for longer than the others.",
            of(straggles));
  out.gauge("ostro_train_workers_most_leaves", "Leaves of the worker that ran most in its last step.",
            of(most));
  out.gauge("ostro_train_workers_fewest_leaves", "Leaves of the worker that ran fewest in its last step.",
            of(fewest));
  out.gauge("ostro_train_workers_between_slices_bytes",
            "Bytes that the connected workers have sent to workers of other slices.", of(between_slices));
  out.gauge("ostro_train_epoch", "Number of the last epoch of membership.", of(job.epoch));
  if (!counts) return;
  out.counter("ostro_train_workers_joined_total", "Workers that joined since the coordinator began.",
              of(job.joined_count));
  out.counter("ostro_train_workers_left_total", "Workers that left as they were asked to.",
              of(job.left_count));
  out.counter("ostro_train_workers_lost_total", "Workers that were lost.", of(job.lost_count));
  out.counter("ostro_train_control_bytes_total", "Bytes between the coordinator and workers, both ways.",
              of(job.control_bytes));
  out.counter("ostro_train_relayed_bytes_total",
              "Bytes that the coordinator has passed on between workers that do not reach each other.",
              of(job.relayed_bytes));
  out.gauge("ostro_train_relayed_pairs", "Pairs of workers between which the coordinator passes bytes on.",
            of(job.relayed_pairs));
}

}  // namespace

RunFigures read_figures(io::FileSystem& fs, const std::string& run_directory) {
  RunFigures out;
  out.directory = run_directory;
  if (auto meters = run::read_meters(fs, run_directory); meters.ok()) out.meters = std::move(*meters);
  if (auto goodput = run::read_goodput(fs, io::join_path(run_directory, run::kGoodputFile)); goodput.ok())
    out.goodput = *goodput;
  if (auto job = cluster::read_cluster_file(fs, io::join_path(run_directory, cluster::kClusterFile));
      job.ok())
    out.job = std::move(*job);
  struct statvfs disk{};
  if (::statvfs(run_directory.c_str(), &disk) == 0) {
    out.disk_free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
    out.disk_size = static_cast<double>(disk.f_blocks) * static_cast<double>(disk.f_frsize);
  }
  return out;
}

std::string run_metrics_text(const RunFigures& figures) {
  PrometheusText out;
  out.family("ostro_train_info", "gauge", "The run; the value is always 1.");
  out.sample(1, {{"run", figures.directory}});
  if (figures.meters) {
    add_steps(*figures.meters, out);
    add_saves(*figures.meters, out);
  }
  if (figures.goodput) add_goodput(*figures.goodput, out);
  if (figures.job) add_job(*figures.job, figures.counts_workers, out);
  if (figures.disk_free >= 0) {
    out.gauge("ostro_train_disk_free_bytes", "Free bytes on the disk of the run.", figures.disk_free);
    out.gauge("ostro_train_disk_size_bytes", "Size of that disk.", figures.disk_size);
  }
  if (!figures.alerts.empty()) {
    out.family("ostro_train_alerts_total", "counter", "Alerts since this process began.");
    for (const auto& [name, count] : figures.alerts) out.sample(of(count.raised), {{"alert", name}});
    out.family("ostro_train_alert_active", "gauge", "1 while the cause of the alert is there.");
    for (const auto& [name, count] : figures.alerts)
      if (count.active) out.sample(*count.active ? 1 : 0, {{"alert", name}});
  }
  return out.text();
}

}  // namespace ostro::monitor
