// Splits random programs over random meshes and compares the joined results with the whole program's, bit for
// bit, on the interpreter.
//   fuzz_partition [--count N] [--sample N] [--seed FIRST|drawn]    as of tests/fuzz/fuzz_engines.cc
// Prints the seed, the maps and the first result that differs; exits 1 if there was one, or if too few of the
// partitioned programs exchange anything to prove something.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "ostro/base/test_size.h"
#include "ostro/dist/loop_collectives.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/numerics/bf16.h"
#include "ostro/spmd/run_parts.h"
#include "random_program.h"
#include "rng.h"

namespace {

using namespace ostro;
using runtime::Buffer;

void collect_axes(const ir::Block& block, std::set<std::string>& names) {
  for (const ir::Shape& s : block.values)
    for (const ir::Axis& a : s.axes) names.insert(a.name);
  for (const ir::Op& op : block.ops)
    for (const ir::Block& region : op.regions) collect_axes(region, names);
}

int64_t collectives_in(const ir::Block& block) {
  int64_t n = 0;
  for (const ir::Op& op : block.ops) {
    n += ir::is_collective(op.kind) && op.kind != ir::OpKind::shard_slice ? 1 : 0;
    for (const ir::Block& region : op.regions) n += collectives_in(region);
  }
  return n;
}

// One or two mesh axes; every array axis is mapped with some luck, in random order.
spmd::PartitionOptions random_options(const ir::Program& p, fuzz::Rng& rng) {
  spmd::PartitionOptions o;
  o.sharding.mesh.axes = {{"model", rng.between(2, 4)}};
  if (rng.chance(0.3)) o.sharding.mesh.axes.push_back({"data", 2});
  std::set<std::string> names;
  collect_axes(p.body, names);
  for (ir::AxisMap* map : {&o.sharding.compute, &o.sharding.parameter}) {
    std::vector<std::string> order(names.begin(), names.end());
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[static_cast<size_t>(rng.below(static_cast<int64_t>(i)))]);
    for (const std::string& name : order)
      if (rng.chance(0.7))
        map->emplace_back(
            name, o.sharding.mesh
                      .axes[static_cast<size_t>(rng.below(static_cast<int64_t>(o.sharding.mesh.axes.size())))]
                      .name);
  }
  if (rng.chance(0.5)) o.cells = {{"embed", rng.between(2, 6)}};
  const auto role = [&] { return rng.chance(0.4) ? spmd::Role::kParameter : spmd::Role::kActivation; };
  for (size_t i = 0; i < p.body.params.size(); ++i) o.params.push_back(role());
  for (size_t i = 0; i < p.body.results.size(); ++i) o.results.push_back(role());
  return o;
}

// An axis that is summed over without fitting leaves is refused by name: it is taken out of the map.
Result<spmd::Partition> partition(const ir::Program& p, spmd::PartitionOptions& o) {
  for (;;) {
    auto parts = spmd::partition(p, o);
    if (parts.ok()) return parts;
    const std::string& message = parts.error().message();
    const size_t before = o.sharding.compute.size();
    std::erase_if(o.sharding.compute, [&](const auto& entry) {
      return message.find(fmt::format("set numerics.leaves.{} to", entry.first)) != std::string::npos;
    });
    if (o.sharding.compute.size() == before) return parts;
  }
}

// NaN payloads are unspecified (numerics.md, N0).
template <typename T, typename Widen>
bool equal_floats(const Buffer& a, const Buffer& b, Widen widen) {
  for (int64_t i = 0; i < a.shape().count(); ++i) {
    const T x = a.as<T>()[static_cast<size_t>(i)], y = b.as<T>()[static_cast<size_t>(i)];
    if (std::memcmp(&x, &y, sizeof(T)) != 0 && !(std::isnan(widen(x)) && std::isnan(widen(y)))) return false;
  }
  return true;
}

bool equal(const Buffer& a, const Buffer& b) {
  if (a.shape() != b.shape()) return false;
  switch (a.shape().dtype) {
    case ir::DType::f32: return equal_floats<float>(a, b, [](float x) { return x; });
    case ir::DType::f64: return equal_floats<double>(a, b, [](double x) { return x; });
    case ir::DType::bf16:
      return equal_floats<numerics::Bf16>(a, b, [](numerics::Bf16 x) { return numerics::to_f32(x); });
    default: return std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()) == 0;
  }
}

Status check(uint64_t seed, int64_t* exchanging) {
  const fuzz::RandomCase c = fuzz::random_case(seed);
  fuzz::Rng rng(seed * 2 + 1);
  spmd::PartitionOptions o = random_options(c.program, rng);
  ASSIGN_OR_RETURN(const spmd::Partition parts, partition(c.program, o));
  *exchanging += collectives_in(parts.programs[0]->body) > 0 ? 1 : 0;
  const auto engine = interp::make_interpreter();
  ASSIGN_OR_RETURN(auto executable, engine->compile(c.program));
  ASSIGN_OR_RETURN(const std::vector<Buffer> whole, executable->run(c.inputs));
  ASSIGN_OR_RETURN(const std::vector<Buffer> joined,
                   spmd::run_parts(*engine, parts, c.inputs,
                                   [&](const auto& work) { return dist::run_workers(parts.mesh, work); }));
  for (size_t i = 0; i < whole.size(); ++i) {
    if (equal(whole[i], joined[i])) continue;
    std::vector<std::string> map;
    for (const auto& [axis, mesh_axis] : o.sharding.compute) map.push_back(axis + ":" + mesh_axis);
    return invalid_argument(fmt::format("result {} {} differs; mesh of {}, compute map {}", i,
                                        whole[i].shape().str(), parts.mesh.size(), fmt::join(map, " ")));
  }
  return Status();
}

bool read_number(std::string_view text, int64_t& out) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) {
  int64_t count = 60, first = 1, sample = 0;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && std::strcmp(argv[i], "--seed") == 0 && std::strcmp(argv[i + 1], "drawn") == 0) {
      first = static_cast<int64_t>(test_seed());
      continue;
    }
    int64_t* out = std::strcmp(argv[i], "--count") == 0    ? &count
                   : std::strcmp(argv[i], "--sample") == 0 ? &sample
                   : std::strcmp(argv[i], "--seed") == 0   ? &first
                                                           : nullptr;
    if (out == nullptr || i + 1 == argc || !read_number(argv[i + 1], *out))
      return fmt::print(stderr, "usage: fuzz_partition [--count N] [--sample N] [--seed FIRST|drawn]\n"), 2;
  }
  if (sample > 0) count = sized(sample, count, count);
  int64_t different = 0, exchanging = 0;
  for (int64_t seed = first; seed < first + count; ++seed) {
    const Status status = check(static_cast<uint64_t>(seed), &exchanging);
    if (status.ok()) continue;
    ++different;
    fmt::print("seed {}: {}\n", seed, status.error().message());
  }
  fmt::print("{} programs from seed {}, {} exchange between workers, {} differ\n", count, first, exchanging,
             different);
  return different == 0 && exchanging * 2 > count ? 0 : 1;
}
