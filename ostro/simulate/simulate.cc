#include "ostro/simulate/simulate.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/numerics/functions.h"
#include "ostro/simulate/calibrate.h"
#include "ostro/simulate/step/units.h"

namespace ostro::simulate {
namespace {

constexpr int kSteps = 16;          // whose mean is a step's time
constexpr double kMostSteps = 1e8;  // of a run; each is an event

double gigabytes(int64_t bytes) { return static_cast<double>(bytes) / kGiga; }

// The most that one host sends inside, and the hosts of one slice to others.
std::pair<int64_t, int64_t> most_sent(const StepPlan& plan) {
  int64_t inside = 0, between = 0;
  std::vector<int64_t> of_slice(static_cast<size_t>(plan.slices));
  for (int64_t rank = 0; rank < plan.hosts; ++rank) {
    const Traffic sent = plan.work(rank).sent();
    inside = std::max(inside, sent.inside);
    of_slice[static_cast<size_t>(plan.slice_of[static_cast<size_t>(rank)])] += sent.between;
  }
  for (const int64_t bytes : of_slice) between = std::max(between, bytes);
  return {inside, between};
}

// What most of the bytes are that a host sends inside its slice, or to others.
std::string mostly(const StepPlan& plan, bool between) {
  std::string what;
  int64_t most = 0;
  for (const HostWork& kind : plan.kinds)
    for (const train::Sent& sent : kind.sends)
      if (const int64_t bytes = between ? sent.between : sent.bytes - sent.between; bytes > most)
        most = bytes, what = ", most of it " + sent.what;
  return what;
}

// All with the same differences among hosts.
std::vector<Limit> limits_of(const RunModel& model, const StepPlan& plan, const SimulateOptions& o,
                             const std::vector<double>& speed) {
  const auto [inside, between] = most_sent(plan);
  int64_t messages = 0;
  for (const HostWork& kind : plan.kinds) messages = std::max(messages, kind.sent().messages);
  std::vector<Limit> out;
  const auto faster = [&](const std::string& what, const std::string& figures, auto change) {
    SimulateOptions other = o;
    change(other);
    std::vector<double> speeds = speed;
    for (double& x : speeds) x = numerics::pow_f64(x, other.spread / o.spread);
    Random same(o.seed);
    out.push_back({what, time_step(model, plan, other, speeds, same).seconds, figures});
  };
  faster("", "", [](SimulateOptions&) {});
  const double leaf = host_seconds(model, plan, o, plan.work(0)).leaf;
  faster("computing",
         fmt::format("{} leaves of {:.4g} s on the host with the most, {:.4g} FLOP each", plan.most_leaves(),
                     leaf, plan.leaf_flops),
         [](SimulateOptions& x) {
           x.flops *= 2;
           x.leaf_seconds /= 2;
         });
  faster("memory",
         fmt::format("each host updates {:.4g} GB of state and adds gradients {:.3g} times",
                     gigabytes(plan.work(0).state), plan.work(0).adds.total()),
         [](SimulateOptions& x) {
           x.memory_gbytes *= 2;
           x.add_seconds /= 2;
           x.update_seconds /= 2;
           x.print_seconds /= 2;
         });
  const bool links = o.machines() > 1;  // hosts of one machine use none
  if (links)
    faster(plan.slices > 1 ? "links inside slices" : "links",
           fmt::format("a host sends {:.4g} GB at {:g} Gbit/s{}", gigabytes(inside), o.inner_gbit,
                       mostly(plan, false)),
           [](SimulateOptions& x) { x.inner_gbit *= 2; });
  if (o.loopback_gbytes > 0)
    faster("copies by cores",
           fmt::format("a host sends {:.4g} GB, at {:g} GB/s of a core{}", gigabytes(inside),
                       o.loopback_gbytes, mostly(plan, false)),
           [](SimulateOptions& x) { x.loopback_gbytes *= 2; });
  if (links && plan.slices > 1)
    faster("links between slices",
           fmt::format("a slice sends {:.4g} GB to the others at {:g} Gbit/s{}", gigabytes(between),
                       o.outer_gbit, mostly(plan, true)),
           [](SimulateOptions& x) { x.outer_gbit *= 2; });
  if (links && plan.slices > 1 && o.connection_gbit > 0)
    faster("connections between slices",
           fmt::format("each pair of hosts in different slices has {} of {:g} Gbit/s", plan.connections,
                       o.connection_gbit),
           [](SimulateOptions& x) { x.connection_gbit *= 2; });
  faster(
      "messages",
      fmt::format("a host sends {} messages, each of which takes {:g} us of a core", messages, o.message_us),
      [](SimulateOptions& x) { x.message_us /= 2; });
  if (links)
    faster("latency",
           fmt::format("{:g} us inside a slice, {:g} us to others", o.inner_latency_us, o.outer_latency_us),
           [](SimulateOptions& x) {
             x.inner_latency_us /= 2;
             x.outer_latency_us /= 2;
           });
  faster("differences among hosts",
         fmt::format("their speeds differ by {:.3g}, and from step to step by {:.3g}", o.spread, o.jitter),
         [](SimulateOptions& x) {
           x.spread /= 2;
           x.jitter /= 2;
         });
  std::stable_sort(out.begin() + 1, out.end(),
                   [](const Limit& a, const Limit& b) { return a.seconds < b.seconds; });
  return out;
}

// Options that were given and change nothing.
void add_unused(const SimulateOptions& o, std::vector<std::string>& notes) {
  const SimulateOptions none;
  if (o.hosts_per_machine == 1 && o.cores > 1)
    notes.push_back(fmt::format(
        "--cores {:g} has no effect with one host on a machine, which uses one core at most", o.cores));
  if (o.hosts > 1 && o.machines() == 1)
    notes.push_back(
        "all hosts are on one machine, so --inner_gbit, --inner_latency_us, --outer_gbit, "
        "--outer_latency_us and --connection_gbit have no effect on a step");
  if (o.connection_gbit > 0 && o.slices == 1)
    notes.push_back("--connection_gbit has no effect with one slice");
  if (o.leaf_seconds > 0 && o.flops != none.flops)
    notes.push_back("--flops has no effect beside --leaf_seconds");
  if (o.add_seconds > 0 && o.update_seconds > 0 && o.print_seconds > 0 &&
      o.memory_gbytes != none.memory_gbytes)
    notes.push_back(
        "--memory_gbytes has no effect beside --add_seconds, --update_seconds and --print_seconds");
}

// What is measured is not given as well.
Status check_measured(const SimulateOptions& o) {
  using O = SimulateOptions;
  const SimulateOptions none;
  for (double O::* measured : {&O::flops, &O::memory_gbytes, &O::leaf_seconds, &O::add_seconds,
                               &O::update_seconds, &O::print_seconds, &O::loopback_gbytes, &O::message_us})
    for (const Rate& rate : rates())
      if (rate.value == measured && o.*measured != none.*measured)
        return invalid_argument(
            fmt::format("--{} {:g} and --calibrate, which measures what stands in its place; leave one out",
                        rate.name, o.*measured));
  return Status();
}

std::vector<std::string> notes_of(const RunModel& model, const StepPlan& plan, const SimulateOptions& o) {
  std::vector<std::string> notes = train::idle_mesh_axes(model.config, plan.hosts);
  if (const int64_t idle = plan.idle(); idle > 0)
    notes.push_back(fmt::format(
        "{} of {} hosts have no leaf, because a step has {} leaves: raise trainer.train_batch_size, lower "
        "numerics.leaf_examples, or use {} hosts",
        idle, plan.hosts, plan.leaves, plan.hosts - idle));
  if (plan.parts() < plan.hosts)
    notes.push_back(
        fmt::format("parameters are cut into {} parts for {} hosts, so several hosts hold and "
                    "update the same cells; numerics.cells and trainer.mesh.axes decide that",
                    plan.parts(), plan.hosts));
  if (plan.sampled)
    notes.push_back(
        fmt::format("bytes are computed for {} hosts, which stand for the others with as many "
                    "leaves",
                    plan.kinds.size()));
  if (plan.two_levels && !plan.layered && !plan.overlaps)
    notes.push_back(
        "what goes between slices is sent before and after the leaves: trainer.mesh.slice_overlap is false");
  if (model.config.trainer.sharding.shares == train::LeafSharing::kMeasured)
    notes.push_back("trainer.shares: measured: hosts are simulated with even shares of the leaves");
  add_unused(o, notes);
  return notes;
}

}  // namespace

Result<Simulation> simulate(RunModel model, runtime::Engine& engine, const SimulateOptions& options) {
  RETURN_IF_ERROR(check_options(options));
  RETURN_IF_ERROR(train::check_workers(model.config, options.hosts));
  Simulation out;
  out.options = options;
  out.model = std::move(model);
  const std::vector<int64_t> sizes(static_cast<size_t>(options.slices), options.hosts / options.slices);
  ASSIGN_OR_RETURN(out.plan, plan_step(out.model, engine, sizes));
  Random random(options.seed);
  std::vector<double> speed;
  for (int64_t host = 0; host < options.hosts && options.spread > 0; ++host)
    speed.push_back(random.log_normal(options.spread));
  std::vector<StepTime> steps;
  for (int i = 0; i < kSteps; ++i) steps.push_back(time_step(out.model, out.plan, options, speed, random));
  out.step = mean_step(steps);
  out.limits = limits_of(out.model, out.plan, options, speed);
  out.as_it_is = out.limits.front().seconds;
  out.limits.erase(out.limits.begin());
  out.notes = notes_of(out.model, out.plan, options);
  if (options.hours > 0) {
    const double steps = options.hours * kHour / out.step.seconds;
    if (steps > kMostSteps)
      return invalid_argument(fmt::format(
          "--hours {:g}: a step takes {:.3g} s, so these are {:.3g} steps, and {:.3g} are simulated at "
          "most; use --hours {:.3g}",
          options.hours, out.step.seconds, steps, kMostSteps, 0.99 * options.hours * kMostSteps / steps));
    ASSIGN_OR_RETURN(out.run, simulate_run(out.model, engine, options, out.plan));
    if (const int64_t last = out.model.config.trainer.num_train_steps; out.run->steps > last)
      out.notes.push_back(fmt::format(
          "the run would end after its {} steps (trainer.num_train_steps); what follows goes on", last));
  }
  return out;
}

Result<Simulation> simulate_config(io::FileSystem& fs, const train::TrainConfig& config, int64_t vocab,
                                   runtime::Engine& engine, SimulateOptions options, bool calibrates) {
  RETURN_IF_ERROR(check_options(options));
  ASSIGN_OR_RETURN(RunModel model, load_model(fs, config, vocab));
  if (calibrates) {
    RETURN_IF_ERROR(check_measured(options));
    ASSIGN_OR_RETURN(options, calibrate(model, engine, options));
  }
  return simulate(std::move(model), engine, options);
}

}  // namespace ostro::simulate
