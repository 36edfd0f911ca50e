// What workers exchange, beside Gloo's own ring all-reduce of the same array: all_reduce_tree as the engine
// runs it, over connections as in training, in processes of this machine. Both take turns, in one run, and
// which comes first changes from turn to turn. A line of JSON a turn from the first worker; a ratio above 1
// means that ours is faster. The last line has medians, and the time of an exchange of 8 bytes and its system
// calls' share.
#include <fmt/core.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "arguments.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/dist/gloo_group.h"
#include "ostro/dist/key_value_for_test.h"
#include "ostro/ir/program/builder.h"

namespace ostro::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Setting {
  int64_t workers = 2, mib = 64, turns = 7, rank = 0;
  std::string folder;
  int64_t elements() const { return mib * (1 << 20) / 4; }
};

double seconds_of(const std::function<Status()>& f, Status& status) {
  const auto begin = Clock::now();
  const Status s = f();
  if (status.ok()) status = s;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// x -> one element of the sum: the sum itself stays in the program's own memory, as in training.
ir::Program sum_program(int64_t elements, int64_t workers) {
  ir::Program program;
  program.name = "sum";
  ir::Builder builder(program.body);
  const ir::ValueId x = program.body.add_param({ir::DType::f32, {{"n", elements}}});
  const ir::ValueId sum =
      builder.add(ir::OpKind::all_reduce_tree, {x},
                  {{"mesh_axis", std::string("data")}, {"workers", workers}, {"leaves", workers}});
  program.body.results = {builder.add(
      ir::OpKind::slice, {sum}, {{"axis", std::string("n")}, {"start", elements - 1}, {"size", int64_t{1}}})};
  return program;
}

// Every worker waits for all.
Status meet_all(runtime::Collectives& c) {
  const std::vector<int64_t> peers = c.peers("data");
  const int64_t mine = 0;
  std::vector<int64_t> theirs(peers.size());
  const std::vector<std::span<const std::byte>> send(peers.size(), std::as_bytes(std::span(&mine, 1)));
  std::vector<std::span<std::byte>> receive;
  for (int64_t& x : theirs) receive.push_back(std::as_writable_bytes(std::span(&x, 1)));
  return c.exchange(peers, send, receive);
}

std::shared_ptr<gloo::rendezvous::Context> connect_ring(const Setting& s) {
  gloo::rendezvous::FileStore store(s.folder + "/ring");
  auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
  auto context =
      std::make_shared<gloo::rendezvous::Context>(static_cast<int>(s.rank), static_cast<int>(s.workers));
  std::shared_ptr<gloo::transport::Device> shared = device;
  context->connectFullMesh(store, shared);
  return context;
}

void ring(const std::shared_ptr<gloo::rendezvous::Context>& context, std::vector<float>& x) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(gloo::detail::AllreduceOptionsImpl::RING);
  options.setOutput(x.data(), x.size());
  options.setReduceFunction(
      [](void* out, const void* a, const void* b, size_t n) { gloo::sum<float>(out, a, b, n); });
  gloo::allreduce(options);
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

// CPU seconds of this process: of the program, of the system.
std::pair<double, double> cpu() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {s(u.ru_utime), s(u.ru_stime)};
}

Status run(const Setting& s) {
  dist::FolderKeyValue store(s.folder);
  ASSIGN_OR_RETURN(const auto group,
                   dist::connect_gloo({{{"data", s.workers}}}, s.rank, store, "bench/", {}));
  const auto context = connect_ring(s);
  ASSIGN_OR_RETURN(const auto engine, cpu::make_cpu_engine({.isa = {}, .threads = 1}));
  const ir::Program program = sum_program(s.elements(), s.workers);
  ASSIGN_OR_RETURN(const auto executable, engine->compile(program));
  runtime::Buffer x = runtime::Buffer::zeros(program.body.shape(program.body.params[0]));
  std::vector<float> y(static_cast<size_t>(s.elements()), 1.0F);
  Status status;
  const auto ours = [&]() -> Status {
    return executable->run({x}, {.collectives = group.get()}).ok() ? Status()
                                                                   : Status(io_error("the sum failed"));
  };
  const auto theirs = [&] {
    ring(context, y);
    return Status();
  };
  std::vector<double> ratios, mine, gloos;
  double system = 0;
  for (int64_t turn = -1; turn < s.turns && status.ok(); ++turn) {  // the first warms up
    double a = 0, b = 0;
    for (const bool first : {true, false}) {
      RETURN_IF_ERROR(meet_all(*group));
      const double before = cpu().second;
      const bool own = first == (turn % 2 == 0);
      (own ? a : b) = seconds_of(own ? std::function<Status()>(ours) : theirs, status);
      if (own && turn >= 0) system += cpu().second - before;
    }
    if (turn < 0) continue;
    ratios.push_back(b / a), mine.push_back(a), gloos.push_back(b);
    if (s.rank == 0) fmt::print("{{\"turn\": {}, \"s\": {:.6f}, \"ring_s\": {:.6f}}}\n", turn, a, b);
  }
  constexpr int kSmall = 2000;
  const double small = seconds_of(
      [&]() -> Status {
        for (int i = 0; i < kSmall; ++i) RETURN_IF_ERROR(meet_all(*group));
        return Status();
      },
      status);
  RETURN_IF_ERROR(status);
  if (s.rank == 0)
    fmt::print(
        "{{\"workers\": {}, \"mib\": {}, \"turns\": {}, \"s\": {:.6f}, \"ring_s\": {:.6f}, \"ratio\": "
        "{:.3f}, "
        "\"ratio_min\": {:.3f}, \"ratio_max\": {:.3f}, \"system_s\": {:.6f}, \"small_exchange_us\": "
        "{:.1f}}}\n",
        s.workers, s.mib, s.turns, median(mine), median(gloos), median(ratios),
        *std::min_element(ratios.begin(), ratios.end()), *std::max_element(ratios.begin(), ratios.end()),
        system / static_cast<double>(s.turns), 1e6 * small / kSmall);
  return Status();
}

int work(const Setting& s) {
  Status status;
  try {
    status = run(s);
  } catch (const std::exception& e) {  // of Gloo's own ring
    status = io_error(e.what());
  }
  std::fflush(stdout);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: worker {}: {}\n", s.rank, status.error().message());
  return 1;
}

int main_of(int argc, char** argv) {
  Setting s;
  const Status read = read_options(argc, argv,
                                   {whole_option<int64_t>("--workers", 2, s.workers),
                                    count_option("--mib", s.mib), count_option("--turns", s.turns)});
  if (!read.ok()) {
    fmt::print(stderr, "error: {}\n", read.error().message());
    return 2;
  }
  s.folder = (std::filesystem::temp_directory_path() / "ostro_collectives_XXXXXX").string();
  if (::mkdtemp(s.folder.data()) == nullptr) return 1;
  std::filesystem::create_directory(s.folder + "/ring");
  std::vector<pid_t> children;
  for (s.rank = 1; s.rank < s.workers; ++s.rank) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(work(s));
  }
  s.rank = 0;
  int failed = work(s);
  for (const pid_t child : children) {
    int end = 0;
    ::waitpid(child, &end, 0);
    failed |= end;
  }
  std::filesystem::remove_all(s.folder);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ostro::bench

int main(int argc, char** argv) { return ostro::bench::main_of(argc, argv); }
