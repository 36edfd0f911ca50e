// A release whose matrices stay int8 on the way through a checkpoint: the same bytes again, and the same
// products.
#include <doctest/doctest.h>

#include <cstring>
#include <map>

#include "ostro/checkpoint/restore.h"
#include "ostro/grok/convert/export.h"
#include "ostro/grok/convert/import.h"
#include "ostro/grok/layout/shape_for_test.h"
#include "ostro/grok/release/writer.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/numerics/bf16.h"

namespace ostro::grok {
namespace {

Status write_noise(io::FileSystem& fs, const std::string& directory, const GrokShape& shape) {
  RETURN_IF_ERROR(begin_release(fs, directory, shape));
  uint32_t state = 1;
  for (const Leaf& leaf : make_leaves(shape))
    RETURN_IF_ERROR(write_tensor(fs, directory, leaf, [&](const StoredArray& array, const Append& append) {
      const int64_t count = array.bytes / item_size(array.dtype);
      std::vector<std::byte> bytes(static_cast<size_t>(array.bytes));
      for (int64_t i = 0; i < count; ++i) {
        state = state * 1664525 + 1013904223;
        const float f = static_cast<float>(state >> 8) * 0x1p-24f + 0.25f;
        const numerics::Bf16 half = numerics::to_bf16(f * 0x1p-8f);
        std::byte* at = bytes.data() + i * item_size(array.dtype);
        if (array.dtype == Dtype::kF32) std::memcpy(at, &f, 4);
        if (array.dtype == Dtype::kBf16) std::memcpy(at, &half, 2);
        if (array.dtype == Dtype::kInt8) *at = static_cast<std::byte>(state >> 24);
      }
      return append(bytes);
    }));
  return {};
}

struct Stored {
  checkpoint::TensorSpec spec;
  std::vector<std::byte> bytes;
};

std::map<std::string, Stored> imported(io::FileSystem& fs, Held held, const std::string& out) {
  const auto release = Release::open(fs, "in");
  REQUIRE(release.ok());
  ImportOptions options;
  options.layers = {0, 3};
  options.held = held;
  const auto saved = import_release(fs, *release, out, {}, options);
  REQUIRE_MESSAGE(saved.ok(), (saved.ok() ? "" : saved.error().message()));
  const auto read = checkpoint::Checkpoint::open(fs, saved->path);
  REQUIRE(read.ok());
  std::map<std::string, Stored> all;
  for (size_t i = 0; i < read->manifest().tensors.size(); ++i) {
    Stored one{read->manifest().tensors[i], {}};
    one.bytes.resize(static_cast<size_t>(one.spec.bytes()));
    check_ok(read->read(static_cast<int64_t>(i), one.bytes));
    all.emplace(one.spec.path, std::move(one));
  }
  return all;
}

TEST_CASE("int8 matrices go through a checkpoint as they are") {
  io::MemoryFileSystem fs;
  check_ok(write_noise(fs, "in", tiny()));
  const auto stored = imported(fs, Held::kInt8, "k8");
  CHECK(stored.at("model/layers/moe/down").spec.type_str() == "i8[layers:3, experts:4, mlp:24, embed:16]");
  CHECK(stored.at("model/layers/moe/down_scales").spec.type_str() ==
        "bf16[layers:3, experts:4, scale_groups:8, embed:16]");
  CHECK(stored.at("model/layers/attention/qkv/scales").spec.type_str() ==
        "bf16[layers:3, scale_groups:1, kv_heads:2, qkv:4, head_dim:8]");

  const auto bytes_of = [&](const Parameter& p, int64_t layer, int64_t first, int64_t count, std::byte* to) {
    const Stored& from = stored.at(p.spec.path);
    const int64_t row = p.columns * checkpoint::dtype_size(p.spec.dtype);
    REQUIRE(from.spec.dtype == p.spec.dtype);
    std::memcpy(to, from.bytes.data() + (std::max<int64_t>(layer, 0) * p.rows + first) * row,
                static_cast<size_t>(count * row));
  };
  ExportOptions options;
  options.read = [&](const Parameter& p, int64_t layer, int64_t first, int64_t count, std::span<float> out) {
    bytes_of(p, layer, first, count, reinterpret_cast<std::byte*>(out.data()));
    return Status();
  };
  options.read_stored = [&](const Parameter& p, int64_t layer, int64_t first, int64_t count,
                            std::span<std::byte> out) {
    bytes_of(p, layer, first, count, out.data());
    return Status();
  };
  check_ok(export_release(fs, "out", tiny(), options));
  for (const Leaf& leaf : make_leaves(tiny()))
    CHECK_MESSAGE(*fs.content("in/" + leaf.file) == *fs.content("out/" + leaf.file), leaf.name);
}

TEST_CASE("an int8 matrix times its scales is what an import to f32 holds") {
  io::MemoryFileSystem fs;
  check_ok(write_noise(fs, "in", tiny()));
  const auto stored = imported(fs, Held::kInt8, "k8"), wide = imported(fs, Held::kF32, "k32");
  for (const Parameter& p : parameters(tiny(), {0, 3}, Held::kInt8)) {
    if (p.spec.dtype != "i8") continue;
    const Stored &w = stored.at(p.spec.path), &scales = stored.at(scales_path(p.spec.path)),
                 &x = wide.at(p.spec.path);
    const auto count = static_cast<int64_t>(w.bytes.size());
    const int64_t rows = count / p.columns, groups = scales.spec.bytes() / 2 / p.columns;
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      numerics::Bf16 scale;
      std::memcpy(&scale,
                  scales.bytes.data() + 2 * (i / p.columns / (rows / groups) * p.columns + i % p.columns), 2);
      float expected;
      std::memcpy(&expected, x.bytes.data() + 4 * i, 4);
      wrong += static_cast<float>(static_cast<int8_t>(w.bytes[static_cast<size_t>(i)])) * to_f32(scale) !=
               expected;
    }
    CHECK_MESSAGE(wrong == 0, p.spec.path);
  }
}

TEST_CASE("scales that are not finite are refused, whatever the matrices are held as") {
  for (const char* scale : {"\xc0\x7f", "\x80\x7f", "\x80\xff", "\x7f\x7f"})  // nan, inf, -inf, 3.4e38
    for (const Held held : {Held::kInt8, Held::kBf16, Held::kF32}) {
      io::MemoryFileSystem fs;
      check_ok(write_noise(fs, "in", tiny()));
      const std::vector<Leaf> leaves = make_leaves(tiny());
      std::string* file = fs.content("in/" + leaves[3].file);
      // Each of a group, so that no weight of zero hides it.
      const StoredArray& scales = *leaves[3].tensor.scales;
      for (int64_t at = scales.begin; at < scales.begin + scales.bytes; at += 2)
        file->replace(static_cast<size_t>(at), 2, scale, 2);
      const auto release = Release::open(fs, "in");
      REQUIRE(release.ok());
      ImportOptions options;
      options.layers = {0, 3};
      options.held = held;
      const auto made = import_release(fs, *release, "out", {.kind = checkpoint::Kind::kPermanent}, options);
      REQUIRE(!made.ok());
      CHECK(made.error().code() == ErrorCode::kCorrupt);
    }
}

TEST_CASE("files that the configuration has no place for are refused") {
  io::MemoryFileSystem fs;
  check_ok(write_noise(fs, "in", tiny()));
  GrokShape fewer = tiny();
  fewer.layers = 2;
  std::string* config = fs.content("in/config.json");
  REQUIRE(config != nullptr);
  *config = shape_to_json(fewer);
  const auto release = Release::open(fs, "in");
  REQUIRE(release.ok());
  const Status refused = check_import(*release, {.layers = {0, 2}, .held = Held::kF32, .progress = {}});
  REQUIRE(!refused.ok());
  CHECK_MESSAGE(refused.error().message().find("12 tensor files") != std::string::npos,
                refused.error().message());
}

TEST_CASE("matrices that are not int8 cannot stay so") {
  io::MemoryFileSystem fs;
  check_ok(write_noise(fs, "in", tiny(Dtype::kBf16)));
  const auto release = Release::open(fs, "in");
  REQUIRE(release.ok());
  ImportOptions options;
  options.layers = {0, 3};
  options.held = Held::kInt8;
  const Status checked = check_import(*release, options);
  REQUIRE_FALSE(checked.ok());
  CHECK(checked.error().message().find("has its matrices in bf16") != std::string::npos);
}

}  // namespace
}  // namespace ostro::grok
