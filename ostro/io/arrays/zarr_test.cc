#include "ostro/io/arrays/zarr.h"

#include <doctest/doctest.h>

#include <numeric>

#include "ostro/io/arrays/zarr_1d.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"

using namespace ostro;
using namespace ostro::io;

namespace {

std::vector<float> ramp(int64_t n) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

std::vector<float> read_all(const ZarrArray& array) {
  std::vector<float> values(static_cast<size_t>(product(array.spec().shape)), -1.0f);
  check_ok(array.read_box(Extents(array.spec().shape.size(), 0), array.spec().shape,
                          std::as_writable_bytes(std::span(values))));
  return values;
}

std::vector<ZarrSpec> sample_specs() {
  std::vector<ZarrSpec> specs;
  const ZarrSpec base{.dtype = "float32", .shape = {5, 7, 4}, .chunk = {2, 3, 4}};
  specs.push_back(base);
  for (const Compression kind : {Compression::kZstd, Compression::kGzip, Compression::kBlosc}) {
    ZarrSpec spec = base;
    spec.compressor = {.kind = kind, .level = 5, .item_size = 4};
    spec.dimension_names = {"layers", "", "embed"};
    specs.push_back(spec);
    spec.shard = {4, 6, 8};
    spec.attributes = R"({"a":1})";
    specs.push_back(spec);
    spec.index_at_end = false;
    spec.chunk_crc32c = true;
    spec.separator = '.';
    specs.push_back(spec);
  }
  specs.push_back({.dtype = "float32", .shape = {}, .chunk = {}});
  specs.push_back({.dtype = "float32", .shape = {3}, .chunk = {8}, .v2_names = true});
  specs.push_back({.dtype = "float32", .shape = {0, 3}, .chunk = {2, 2}});
  return specs;
}

}  // namespace

TEST_CASE("zarr: metadata survives writing and parsing") {
  for (ZarrSpec spec : sample_specs()) {
    if (spec.compressor.kind != Compression::kBlosc) spec.compressor.item_size = 1;  // only blosc records it
    const std::string text = zarr_json(spec);
    const auto parsed = parse_zarr_json(text, "zarr.json");
    REQUIRE_MESSAGE(parsed.ok(), (parsed.ok() ? "" : parsed.error().message()));
    CHECK(*parsed == spec);
    CHECK(zarr_json(*parsed) == text);
  }
}

TEST_CASE("zarr: metadata of Levanter's caches") {
  const auto spec = parse_zarr_json(
      R"({"chunk_grid":{"configuration":{"chunk_shape":[134217728]},"name":"regular"},
 "chunk_key_encoding":{"name":"default"},
 "codecs":[{"configuration":{"chunk_shape":[262144],"codecs":[{"configuration":{"endian":"little"},"name":"bytes"},
  {"configuration":{"blocksize":0,"clevel":5,"cname":"lz4","shuffle":"shuffle","typesize":8},"name":"blosc"}],
  "index_codecs":[{"configuration":{"endian":"little"},"name":"bytes"},{"name":"crc32c"}]},"name":"sharding_indexed"}],
 "data_type":"int64","fill_value":0,"node_type":"array","shape":[18014398509481984],"zarr_format":3})",
      "zarr.json");
  REQUIRE(spec.ok());
  CHECK(*spec == token_store_spec("int64"));
  CHECK(spec->chunk_name({3}) == "c/3");
}

TEST_CASE("zarr: metadata that is refused says which field") {
  const std::string good = zarr_json({.dtype = "float32", .shape = {4}, .chunk = {2}});
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    const auto spec = parse_zarr_json(text, "x/zarr.json");
    REQUIRE_FALSE(spec.ok());
    CHECK(spec.error().message().starts_with("x/zarr.json"));
    return spec.error().message();
  };
  CHECK(refused("\"fill_value\": 0.0", "\"fill_value\": 1.0").find("fill_value") != std::string::npos);
  CHECK(refused("\"fill_value\": 0.0", "\"fill_value\": -0.0").find("fill_value") != std::string::npos);
  CHECK(refused("little", "big").find("endian") != std::string::npos);
  CHECK(refused("float32", "complex64").find("complex64") != std::string::npos);
  CHECK(refused("\"array\"", "\"group\"").find("node_type") != std::string::npos);
  CHECK(refused("\"zarr_format\": 3", "\"zarr_format\": 2").find("zarr_format") != std::string::npos);
  CHECK(refused("\"fill_value\"", "\"new\": {\"x\": 1}, \"fill_value\"").find("new") != std::string::npos);
  CHECK(refused("\"regular\"", "\"irregular\"").find("irregular") != std::string::npos);
  CHECK(refused("\"bytes\"", "\"transpose\"").find("transpose") != std::string::npos);
  CHECK(refused("    4\n", "    -4\n").find("shape") != std::string::npos);
  CHECK(refused("        2\n", "    0\n").find("chunk_shape") != std::string::npos);
  CHECK(refused("        2\n", "    2, 2\n").find("rank") != std::string::npos);
  CHECK(refused("        2\n", "    4611686018427387904\n").find("chunk_shape") != std::string::npos);
  CHECK(refused("        2\n", "    1073741824\n").find("chunk_shape") != std::string::npos);
}

TEST_CASE("zarr: metadata cut anywhere or with any byte changed never crashes" *
          doctest::test_suite("one-thread")) {
  for (const ZarrSpec& spec : sample_specs()) {
    const std::string text = zarr_json(spec);
    for (size_t size = 0; size + 1 < text.size(); ++size) {
      CHECK_FALSE(parse_zarr_json(text.substr(0, size), "f").ok());
    }
    for (size_t at = 0; at < text.size(); ++at) {
      for (const int flip : {0x01, 0x10, 0x80}) {
        std::string changed = text;
        changed[at] = static_cast<char>(changed[at] ^ flip);
        static_cast<void>(parse_zarr_json(changed, "f"));
      }
    }
  }
}

TEST_CASE("zarr: boxes of every shape come back as they were written") {
  for (const ZarrSpec& spec : sample_specs()) {
    MemoryFileSystem fs;
    auto array = ZarrArray::create(fs, "a/b", spec);
    REQUIRE(array.ok());
    const std::vector<float> values = ramp(product(spec.shape));
    check_ok(array->write_box(Extents(spec.shape.size(), 0), spec.shape, bytes_of(values)));
    auto reopened = ZarrArray::open(fs, "a/b");
    REQUIRE(reopened.ok());
    CHECK(read_all(*reopened) == values);
    if (spec.shape.size() != 3) continue;
    check_ok(for_each_index(spec.shape, [&](const Extents& start) -> Status {
      const Extents rest = {spec.shape[0] - start[0], spec.shape[1] - start[1], spec.shape[2] - start[2]};
      const Extents zero = {0, 0, 0};
      std::vector<float> box(static_cast<size_t>(product(rest))), expected(box.size());
      RETURN_IF_ERROR(reopened->read_box(start, rest, std::as_writable_bytes(std::span(box))));
      copy_box(bytes_of(values), spec.shape, start, std::as_writable_bytes(std::span(expected)), rest, zero,
               rest, 4);
      CHECK(box == expected);
      return {};
    }));
  }
}

TEST_CASE("a box of an array is contiguous, or it is not") {
  const Extents whole = {3, 4, 5};
  CHECK(contiguous_at(whole, Extents{0, 0, 0}, whole) == 0);
  CHECK(contiguous_at(whole, Extents{2, 0, 0}, Extents{1, 4, 5}) == 40);
  CHECK(contiguous_at(whole, Extents{1, 2, 0}, Extents{1, 2, 5}) == 30);
  CHECK(contiguous_at(whole, Extents{1, 2, 3}, Extents{1, 1, 2}) == 33);
  CHECK(!contiguous_at(whole, Extents{0, 0, 0}, Extents{2, 3, 5}));
  CHECK(!contiguous_at(whole, Extents{0, 0, 0}, Extents{1, 2, 4}));
  CHECK(contiguous_at({}, {}, {}) == 0);
}

TEST_CASE("zarr: parts of an array are written apart, and what is missing reads as zero") {
  MemoryFileSystem fs;
  const ZarrSpec spec{.dtype = "float32", .shape = {4, 6}, .chunk = {2, 4}};
  for (const ZarrWrite mode : {ZarrWrite::kAtomic, ZarrWrite::kFresh}) {
    check_ok(fs.remove_all("a"));
    auto array = ZarrArray::create(fs, "a", spec, mode);
    check_ok(array->write_box({2, 4}, {2, 2}, bytes_of({1, 1, 1, 1})));
    check_ok(fs.sync_tree("a"));
    fs.crash(0);
    auto read = ZarrArray::open(fs, "a");
    REQUIRE(read.ok());
    CHECK(read_all(*read) ==
          std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1});
    CHECK(*fs.exists("a/c/1/1"));
    CHECK_FALSE(*fs.exists("a/c/0/0"));
    CHECK(array->write_box({1, 4}, {1, 2}, bytes_of({1, 1})).error().code() == ErrorCode::kInvalidArgument);
    CHECK(array->write_box({0, 0}, {2, 3}, bytes_of(ramp(6))).error().code() == ErrorCode::kInvalidArgument);
    CHECK(array->write_box({4, 0}, {2, 4}, bytes_of(ramp(8))).error().code() == ErrorCode::kInvalidArgument);
    CHECK(array->write_box({0, 0}, {2, 4}, bytes_of(ramp(7))).error().code() == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("zarr: a chunk file cut anywhere is refused, one with a changed byte never crashes" *
          doctest::test_suite("one-thread")) {
  for (ZarrSpec spec : sample_specs()) {
    if (spec.shape.size() != 3) continue;
    if (spec.sharded()) spec.shard = {4, 6, 4};  // no chunks beyond the array, which are not read
    MemoryFileSystem fs;
    auto array = ZarrArray::create(fs, "a", spec);
    check_ok(array->write_box({0, 0, 0}, spec.shape, bytes_of(ramp(140))));
    const std::string file = join_path("a", spec.chunk_name({0, 0, 0}));
    const std::string good = *fs.read_file(file);
    std::vector<float> out(140);
    const auto read = [&](const std::string& content) {
      *fs.content(file) = content;
      return ZarrArray::open(fs, "a")->read_box({0, 0, 0}, spec.shape,
                                                std::as_writable_bytes(std::span(out)));
    };
    for (size_t size = 0; size < good.size(); ++size) {
      const Status status = read(good.substr(0, size));
      REQUIRE_FALSE(status.ok());
      CHECK(status.error().message().starts_with(file));
    }
    for (size_t at = 0; at < good.size(); ++at) {
      std::string changed = good;
      changed[at] = static_cast<char>(changed[at] ^ 0x44);
      const Status status = read(changed);
      if (spec.chunk_crc32c) CHECK_FALSE(status.ok());
    }
  }
}
