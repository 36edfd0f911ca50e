#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/base/sha256.h"
#include "ostro/grok/layout/shape_for_test.h"
#include "ostro/grok/release/check.h"
#include "ostro/grok/release/writer.h"
#include "ostro/io/files/counting_file_system.h"
#include "ostro/io/files/forwarding_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/numerics/bf16.h"

namespace ostro::grok {
namespace {

// Element i of an array: a small number that depends on i and the array.
std::vector<std::byte> elements_of(const StoredArray& array) {
  const int64_t count = array.bytes / item_size(array.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(array.bytes));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t n = (i * 7 + array.bytes) % 200 - 100;
    const auto at = bytes.data() + i * item_size(array.dtype);
    const float f = static_cast<float>(n) / 64;
    const numerics::Bf16 half = numerics::to_bf16(std::abs(f) + 0.01f);
    if (array.dtype == Dtype::kF32) std::memcpy(at, &f, 4);
    if (array.dtype == Dtype::kBf16) std::memcpy(at, &half, 2);
    if (array.dtype == Dtype::kInt8) *at = static_cast<std::byte>(n);
  }
  return bytes;
}

Status write(io::FileSystem& fs, const std::string& directory, const GrokShape& shape) {
  RETURN_IF_ERROR(begin_release(fs, directory, shape));
  for (const Leaf& leaf : make_leaves(shape)) {
    RETURN_IF_ERROR(
        write_tensor(fs, directory, leaf, [](const StoredArray& array, const Append& append) -> Status {
          const std::vector<std::byte> bytes = elements_of(array);
          const auto half = std::span(bytes).first(bytes.size() / 2);
          RETURN_IF_ERROR(append(half));
          return append(std::span(bytes).subspan(half.size()));
        }));
  }
  return {};
}

ReleaseReport checked(io::FileSystem& fs, const CheckOptions& options = {}) {
  auto report = check_release(fs, "dir", options);
  REQUIRE_MESSAGE(report.ok(), report.error().message());
  return *report;
}

}  // namespace

TEST_CASE("what is written is read, in each dtype") {
  for (const Dtype dtype : {Dtype::kInt8, Dtype::kBf16, Dtype::kF32}) {
    io::MemoryFileSystem fs;
    check_ok(write(fs, "dir/ckpt-0", tiny(dtype)));
    const auto release = Release::open(fs, "dir");
    REQUIRE_MESSAGE(release.ok(), release.error().message());
    CHECK(release->directory() == "dir/ckpt-0");
    CHECK(release->shape() == tiny(dtype));
    for (const Leaf& leaf : release->leaves()) {
      CAPTURE(leaf.name);
      const auto tensor = release->open_tensor(leaf);
      REQUIRE_MESSAGE(tensor.ok(), tensor.error().message());
      CHECK(tensor->stored() == leaf.tensor);
      std::vector<std::byte> stored(static_cast<size_t>(leaf.tensor.weight.bytes));
      check_ok(tensor->read_stored(0, tensor->rows(), stored));
      CHECK(stored == elements_of(leaf.tensor.weight));
    }
  }
}

TEST_CASE("rows are weights times the scales of their group") {
  io::MemoryFileSystem fs;
  check_ok(write(fs, "dir", tiny()));
  const auto release = Release::open(fs, "dir");
  REQUIRE(release.ok());
  for (const Part part : {Part::kExpertDown, Part::kExpertGate, Part::kAttentionOut, Part::kKey}) {
    const Leaf& leaf = release->leaf(part, 2);
    const auto tensor = release->open_tensor(leaf);
    REQUIRE(tensor.ok());
    const StoredArray &w = leaf.tensor.weight, &s = *leaf.tensor.scales;
    const auto weights = elements_of(w), scales = elements_of(s);
    const int64_t columns = w.shape.back(), k = w.shape[w.shape.size() - 2],
                  groups = s.shape[s.shape.size() - 2];
    CHECK(groups == (part == Part::kExpertDown || part == Part::kAttentionOut ? 8 : 1));
    for (const Dequantize mode : {Dequantize::kExact, Dequantize::kReference}) {
      std::vector<float> rows(static_cast<size_t>((tensor->rows() - 3) * columns));
      check_ok(tensor->read_rows(3, tensor->rows() - 3, mode, rows));
      int wrong = 0;
      for (int64_t i = 0; i < static_cast<int64_t>(rows.size()); ++i) {
        const int64_t row = i / columns + 3, column = i % columns;
        const int64_t scale_row = row / k * groups + row % k / (k / groups);
        numerics::Bf16 scale;
        std::memcpy(&scale, scales.data() + (scale_row * columns + column) * 2, 2);
        float product =
            static_cast<float>(static_cast<int8_t>(weights[static_cast<size_t>(row * columns + column)])) *
            to_f32(scale);
        if (mode == Dequantize::kReference) product = numerics::round_to_bf16(product);
        if (rows[static_cast<size_t>(i)] != product) ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("a check tells whole, missing, short and wrong files apart") {
  io::MemoryFileSystem fs;
  check_ok(write(fs, "dir", tiny()));
  CHECK(checked(fs).count(FileState::kWhole) == 38);
  check_ok(fs.remove("dir/tensor00004_000"));
  check_ok(fs.remove("dir/tensor00005_000"));
  fs.content("dir/tensor00003_000")->resize(200);
  fs.content("dir/tensor00006_000")->resize(2);
  fs.content("dir/tensor00007_000")->clear();
  (*fs.content("dir/tensor00008_000"))[0] = 'x';
  *fs.content("dir/tensor00010_000") = *fs.content("dir/tensor00013_000");
  *fs.content("dir/tensor00012_000") = std::string(fs.content("dir/tensor00012_000")->size(), '\0');
  REQUIRE(fs.create("dir/tensor00038_000").ok());
  const ReleaseReport report = checked(fs);
  CHECK(report.count(FileState::kWhole) == 30);
  CHECK(report.count(FileState::kMissing) == 2);
  CHECK(report.count(FileState::kShort) == 3);
  CHECK(report.count(FileState::kWrong) == 3);
  const std::string text = check_text(report, false);
  CHECK(text.starts_with("dir: a Grok of 3 layers, 38 files, "));
  for (const char* line :
       {"missing  tensor00004_000 to tensor00005_000: layer 0, moe/linear_v/w to layer 0, "
        "multi_head_attention/key/w, 2 ",
        "short    tensor00003_000: layer 0, moe/linear_1/w: dir/tensor00003_000: 200 bytes of ",
        "short    tensor00007_000: layer 0, multi_head_attention/query/w: dir/tensor00007_000: 0 bytes of",
        "wrong    tensor00008_000: layer 0, multi_head_attention/value/w: dir/tensor00008_000: byte 0: "
        "opcode 0x78: not a",
        "wrong    tensor00010_000: layer 0, rms_norm_1/scale: dir/tensor00010_000: holds f32 [16, 4]; layer "
        "0, "
        "rms_norm_1/scale is f32 [16]",
        "wrong    tensor00012_000: layer 0, rms_norm_3/scale: dir/tensor00012_000: byte 0: opcode 0x00: not "
        "a pickle: it "
        "begins with zeros",
        "unknown  tensor00038_000: ", "30 whole, 2 missing, 3 short, 3 wrong; "}) {
    CHECK_MESSAGE(text.find(line) != std::string::npos, text, line);
  }
  const auto json = nlohmann::json::parse(check_json(report));
  CHECK(json["wrong"] == 3);
  CHECK(json["files"].size() == 38);
  CHECK(json["files"][8]["state"] == "wrong");
  CHECK(json["files"][3]["scales_shape"] == nlohmann::json({4, 8, 16}));
  CHECK_FALSE(check_release(fs, "elsewhere", {}).ok());
}

TEST_CASE("contents are read once, and their damage is found") {
  io::MemoryFileSystem memory;
  io::CountingFileSystem fs(memory);
  check_ok(write(fs, "dir", tiny()));
  const CheckOptions contents{.config = {}, .contents = true, .memory = "memory", .progress = {}};
  ReleaseReport first = checked(fs, contents);
  CHECK(first.count(FileState::kWhole) == 38);
  CHECK(first.bytes_read == first.bytes(FileState::kWhole));
  CHECK(first.files[5].sha256 == sha256_hex(*memory.content("dir/tensor00005_000")));
  fs.reset();
  CHECK(checked(fs, contents).bytes_read == 0);
  CHECK(fs.counts().bytes_read < 38 * 1600 + 8000);

  const auto leaves = make_leaves(tiny());
  const auto damage = [&](size_t i, int64_t at, const std::string& bytes) {
    std::string* file = memory.content("dir/" + leaves[i].file);
    const std::string changed = file->replace(static_cast<size_t>(at), bytes.size(), bytes);
    auto out = memory.create("dir/" + leaves[i].file);  // another time
    check_ok((*out)->append(changed));
  };
  damage(1, leaves[1].tensor.weight.begin + 8, std::string("\0\0\xc0\x7f", 4));
  damage(3, leaves[3].tensor.scales->begin + 2, std::string("\x80\xbf"));
  const ReleaseReport second = checked(fs, contents);
  CHECK(second.bytes_read == leaves[1].bytes + leaves[3].bytes);
  CHECK(second.files[1].error.ends_with(": an element of its weight is nan"));
  CHECK(second.files[3].error.ends_with(": an element of its scales is -1"));
  CHECK(second.count(FileState::kWrong) == 2);
  // What is remembered is not trusted when it makes no sense, nor when it is the release's own.
  const auto remembered = memory.glob("memory/*");
  REQUIRE(remembered->size() == 1);
  CHECK(memory.glob("dir/*check*")->empty());
  auto planted = memory.create("dir/.ostro_check.json");
  check_ok((*planted)->append(*memory.content(remembered->front())));
  *memory.content(remembered->front()) = "[1, {";
  CHECK(checked(fs, contents).bytes_read ==
        second.bytes(FileState::kWhole) + second.bytes(FileState::kWrong));
}

TEST_CASE("contents are checked in a directory that cannot be written to") {
  io::MemoryFileSystem memory;
  check_ok(write(memory, "dir", tiny()));
  class ReadOnly final : public io::ForwardingFileSystem {
   public:
    using ForwardingFileSystem::ForwardingFileSystem;

   private:
    Status before(Operation operation, const std::string& path) override {
      return operation == Operation::kCreate ? io_error(path + ": Permission denied") : Status();
    }
  };
  ReadOnly fs(memory);
  std::vector<std::string> warnings;
  const LogSink sink = set_log_sink([&](LogLevel, std::string_view line) { warnings.emplace_back(line); });
  const ReleaseReport report =
      checked(fs, {.config = {}, .contents = true, .memory = "memory", .progress = {}});
  set_log_sink(sink);
  CHECK(report.count(FileState::kWhole) == 38);
  CHECK(report.files[5].sha256 == sha256_hex(*memory.content("dir/tensor00005_000")));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("memory") != std::string::npos);
}

TEST_CASE("a hole is found in the contents alone") {
  io::MemoryFileSystem fs;
  GrokShape shape = tiny();
  shape.vocab = 4096;
  shape.embed = 256;
  shape.layers = 1;
  check_ok(begin_release(fs, "dir", shape));
  const auto leaves = make_leaves(shape);
  for (const Leaf& leaf : leaves) check_ok(write_hollow_tensor(fs, "dir", leaf));
  CHECK(checked(fs).count(FileState::kWhole) == 14);
  CHECK(fs.content("dir/tensor00000_000")->size() == static_cast<size_t>(leaves[0].bytes));
  std::string& embedding = *fs.content("dir/tensor00000_000");
  const auto begin = static_cast<size_t>(leaves[0].tensor.weight.begin);
  for (size_t i = begin; i < begin + (3 << 20); i += 64) embedding[i] = 1;
  const ReleaseReport report = checked(fs, {.config = {}, .contents = true, .progress = {}});
  CHECK(report.files[0].error == fmt::format("dir/tensor00000_000: bytes {} to {} of its weight are zeros: a "
                                             "part that a download has not filled",
                                             begin + (3 << 20) - 63, begin + (4 << 20)));
  CHECK(report.files[1].state == FileState::kWhole);  // a norm of 1024 zero bytes may be meant
  CHECK(report.files[2].state == FileState::kWrong);
}

}  // namespace ostro::grok
