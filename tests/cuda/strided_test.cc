// The tiles for regular operands (cuda/products/strided.h), kernel by kernel on the emulated device, against
// the scalar definition of N6 and N7: each size of tile, each way in which operands can lie.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ostro/cuda/text/arguments_host.h"
#include "ostro/cuda/text/device_text.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "ostro/numerics/dots.h"
#include "ostro/numerics/fp_env.h"

namespace ostro {
namespace {

using numerics::Bf16;

struct Product {
  int64_t m, n, k, batches;
  bool goes_on, bf16_result;
};

// Sizes that are no multiples of a tile or of a piece; where 16 bytes lie along m or n, these are multiples
// of 8.
constexpr Product kProducts[] = {
    {8, 16, 40, 1, false, false},    {48, 72, 72, 2, true, false}, {136, 40, 33, 1, true, false},
    {136, 136, 104, 1, false, true}, {16, 8, 3, 1, true, false},
};

// Blocks of device memory with the elements given, kept until the launch is over.
class Bytes {
 public:
  explicit Bytes(gpu::Device& device) : device_(device) {}
  template <typename T>
  uint64_t put(const std::vector<T>& elements) {
    auto block = device_.memory().allocate(static_cast<int64_t>(elements.size() * sizeof(T)));
    REQUIRE(block.ok());
    REQUIRE(device_.memory().write(**block, 0, std::as_bytes(std::span(elements))).ok());
    blocks_.push_back(*block);
    return device_.address(**block).at;
  }
  template <typename T>
  std::vector<T> last(size_t count) {
    std::vector<T> out(count);
    REQUIRE(device_.memory().read(*blocks_.back(), 0, std::as_writable_bytes(std::span(out))).ok());
    return out;
  }

 private:
  gpu::Device& device_;
  std::vector<std::shared_ptr<runtime::Block>> blocks_;
};

// An operand of lines x k whose 16 bytes lie along k or along its lines. Groups of 8 lines lie in reverse
// order, with room between them, so that a table is needed.
struct Operand {
  std::vector<int64_t> lines, along;  // offsets by line and by k
  int64_t step = 0, of_batch = 0;
};
Operand lay(int64_t lines, int64_t k, bool along_k) {
  const int64_t groups = (lines + 7) / 8, pitch = along_k ? (k + 7) / 8 * 8 + 8 : groups * 8 + 8;
  Operand x;
  x.step = along_k ? 1 : pitch;
  x.of_batch = (along_k ? groups * 8 : k) * pitch;
  for (int64_t i = 0; i < lines; ++i) {
    const int64_t at = (groups - 1 - i / 8) * 8 + i % 8;
    x.lines.push_back(along_k ? at * pitch : at);
  }
  for (int64_t i = 0; i < k; ++i) x.along.push_back(i * x.step);
  return x;
}

float drawn(std::mt19937& random) {
  const uint32_t kind = random() % 16;
  if (kind == 0) return random() % 2 == 0 ? 0.0f : -0.0f;
  const float x = std::ldexp(static_cast<float>(static_cast<int32_t>(random()) >> 8), -23);
  return kind == 1 ? x * 0x1p-70f : x;  // products of two of those are below the smallest number
}

// Empty when the kernel gives the bits of the definition.
template <typename T>
std::string wrong(gpu::Device& device, const std::string& tile, const Product& p, bool a_along_k,
                  bool b_along_k) {
  constexpr bool narrow = std::is_same_v<T, Bf16>;
  const std::string name = "strided_" + tile;
  const auto code = device.load(name, cuda::device_file_text("products/" + name + ".cu"));
  if (!code.ok()) return code.error().message();
  const auto kernel =
      (*code)->kernel(fmt::format("{}_{}{}", name, a_along_k ? 'k' : 'm', b_along_k ? 'k' : 'n'));
  if (!kernel.ok()) return kernel.error().message();
  std::mt19937 random(static_cast<uint32_t>(p.m * 31 + p.n * 7 + p.k));
  const Operand x = lay(p.m, p.k, a_along_k), y = lay(p.n, p.k, b_along_k);
  const auto fill = [&](int64_t count) {
    std::vector<T> out(static_cast<size_t>(count));
    for (T& e : out)
      if constexpr (narrow)
        e = numerics::to_bf16(drawn(random));
      else
        e = drawn(random);
    return out;
  };
  std::vector<T> a = fill(x.of_batch * p.batches), b = fill(y.of_batch * p.batches);
  std::vector<float> c(static_cast<size_t>(p.m * p.n * p.batches), 7.0f);
  if (p.goes_on)
    for (float& e : c) e = drawn(random);
  // An output that is -0 as long as no product is added that does not exist.
  for (int64_t k = 0; k < p.k; ++k) {
    T &left = a[static_cast<size_t>(x.lines[0] + k * x.step)],
      &right = b[static_cast<size_t>(y.lines[0] + k * y.step)];
    if constexpr (narrow)
      left = numerics::to_bf16(-0.0f), right = numerics::to_bf16(1.0f);
    else
      left = -0.0f, right = 1.0f;
  }
  if (p.goes_on) c[static_cast<size_t>((p.m - 1) * p.n + p.n - 1)] = -0.0f;
  std::vector<int64_t> rows, columns, batch;
  for (int64_t i = 0; i < p.m; ++i) rows.push_back((p.m - 1 - i) * p.n);
  for (int64_t j = 0; j < p.n; ++j) columns.push_back(p.n - 1 - j);
  for (int64_t i = 0; i < p.batches; ++i)
    batch.insert(batch.end(), {i * x.of_batch, i * y.of_batch, i * p.m * p.n});
  Bytes bytes(device);
  cuda::args::DotArgs args = {};
  args.a = bytes.put(a), args.b = bytes.put(b);
  args.a_row = bytes.put(x.lines), args.b_col = bytes.put(y.lines);
  args.c_row = bytes.put(rows), args.c_col = bytes.put(columns), args.batch = bytes.put(batch);
  args.a_type = args.b_type = narrow ? cuda::args::TYPE_BF16 : cuda::args::TYPE_F32;
  args.c_type = p.bf16_result ? cuda::args::TYPE_BF16 : cuda::args::TYPE_F32;
  args.m = p.m, args.n = p.n, args.k = p.k, args.batches = p.batches, args.segments = 1;
  args.goes_on = p.goes_on ? 1 : 0;
  args.a_step = x.step, args.b_step = y.step;
  args.c = bytes.put(c);
  const int64_t tile_m = std::stoll(tile.substr(tile.find('_') + 1)),
                tile_n = std::stoll(tile.substr(tile.find('x') + 1));
  const int64_t tiles = ((p.m + tile_m - 1) / tile_m) * ((p.n + tile_n - 1) / tile_n);
  const int threads = tile_m == 16 ? 32 : 128;
  const Status done = device.launch(*kernel, {.x = tiles, .z = p.batches, .threads = threads},
                                    std::as_bytes(std::span(&args, 1)), name);
  if (!done.ok()) return done.error().message();
  const std::vector<float> got = bytes.last<float>(c.size());
  const numerics::HostArithmetic environment;
  for (int64_t s = 0; s < p.batches; ++s)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        const auto to = static_cast<size_t>(s * p.m * p.n + rows[static_cast<size_t>(i)] +
                                            columns[static_cast<size_t>(j)]);
        const auto left = [&](int64_t k) {
          return a[static_cast<size_t>(s * x.of_batch + x.lines[static_cast<size_t>(i)] + k * x.step)];
        };
        const auto right = [&](int64_t k) {
          return b[static_cast<size_t>(s * y.of_batch + y.lines[static_cast<size_t>(j)] + k * y.step)];
        };
        const float first = p.goes_on ? c[to] : 0.0f;
        const float expected =
            narrow ? numerics::dot_bf16(p.k, left, right, first) : numerics::dot_f32(p.k, left, right, first);
        bool same = std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(got[to]);
        if (p.bf16_result) {
          Bf16 given;
          std::memcpy(&given, reinterpret_cast<const std::byte*>(got.data()) + 2 * to, 2);
          same = given == numerics::to_bf16(expected);
        }
        if (!same) return fmt::format("[{}, {}, {}]: {} instead of {}", s, i, j, got[to], expected);
      }
  return {};
}

gpu::Device& device_of(const gpu::EmulationOptions& options) {
  auto device = gpu::emulated_device(options);
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  return **device;
}

// What is wrong first, over all products, ways to lie and sizes of tiles of a dtype.
template <typename T>
std::string first_wrong(gpu::Device& device, std::initializer_list<const char*> tiles) {
  for (const std::string tile : tiles)
    for (const Product& p : kProducts)
      for (int way = 0; way < 4; ++way) {
        const bool a_along_k = way % 2 == 0, b_along_k = way / 2 == 0;
        if ((a_along_k || b_along_k) && p.k % 8 != 0) continue;
        const std::string found = wrong<T>(device, tile, p, a_along_k, b_along_k);
        if (!found.empty()) return fmt::format("{} {} x {} x {} way {}: {}", tile, p.m, p.n, p.k, way, found);
      }
  return {};
}

TEST_CASE("tiles of regular operands give the bits of N6") {
  CHECK(first_wrong<float>(device_of({.seed = 5}), {"f32_128x128", "f32_64x128", "f32_16x32"}) == "");
}

TEST_CASE("tiles of regular operands give the bits of N7") {
  CHECK(first_wrong<Bf16>(device_of({.seed = 6}), {"bf16_64x128", "bf16_16x32"}) == "");
}

TEST_CASE("control: faults of the tiles of regular operands are found") {
  const gpu::EmulationOptions::Change changes[] = {
      {"c[i][j] + (even[i][j] + odd[i][j])", "(c[i][j] + even[i][j]) + odd[i][j]"},
      {"(k + K) % 32 == 0", "(k + K) % 64 == 0"},
      {"y.store(y, tiles + half + K * MS);\n    BARRIER();", "y.store(y, tiles + half + K * MS);"},
      {"if (unit_k(u) < left) ", ""},
      {"for (int s = 0; s < end - k; ++s)", "for (int s = 0; s < K; ++s)"},
  };
  for (const auto& change : changes) {
    CAPTURE(change.from);
    gpu::Device& device = device_of({.changes = {change}});
    CHECK(first_wrong<float>(device, {"f32_64x128"}) + first_wrong<Bf16>(device, {"bf16_64x128"}) != "");
    CHECK(gpu::changes_made(device) > 0);
  }
}

}  // namespace
}  // namespace ostro
