// Tests of gpu/driver with the driver and the compiler of fake_cuda.cc and fake_nvrtc.cc, which the loader
// finds by LD_LIBRARY_PATH (CMakeLists.txt). Faults at the start of a driver need a process each:
// tests/fault/gpu_test.py.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "ostro/base/object_cache.h"
#include "ostro/gpu/driver/code_cache.h"
#include "ostro/gpu/driver/driver.h"
#include "ostro/gpu/driver/find_nvrtc.h"
#include "ostro/gpu/driver/gpu.h"
#include "ostro/gpu/driver/gpu_memory.h"
#include "ostro/gpu/driver/nvrtc.h"
#include "ostro/runtime/buffer.h"
#include "tests/cuda/fake_kernels.h"

namespace ostro::gpu {
namespace {

namespace fs = std::filesystem;
using test::FakeAdd;

constexpr const char* kText = "// fake kernels\n";

// The variable for the time of a test.
class Set {
 public:
  Set(const char* name, const std::string& value) : name_(name), before_(environment_variable(name)) {
    setenv(name, value.c_str(), 1);
  }
  ~Set() {
    if (before_.empty())
      unsetenv(name_);
    else
      setenv(name_, before_.c_str(), 1);
  }

 private:
  const char* name_;
  std::string before_;
};

PrivateFolder folder() { return PrivateFolder::make(temporary_dir(), "cuda-driver-").value(); }

Device& gpu() {
  static auto* const cache = new PrivateFolder(folder());
  static const Set dir("OSTRO_CACHE_DIR", cache->path().string());
  const auto device = open_gpu(0);
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  return **device;
}

bool says(const Error& error, const std::string& part) {
  return error.message().find(part) != std::string::npos;
}

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

Kernel kernel(const char* name) {
  const auto code = gpu().load("tests/fake", kText);
  REQUIRE(code.ok());
  return code.value()->kernel(name).value();
}

TEST_CASE("the driver says what it is and which GPUs there are") {
  const auto driver = Driver::open();
  REQUIRE_MESSAGE(driver.ok(), driver.error().message());
  CHECK((*driver)->path().ends_with("libcuda.so.1"));
  CHECK(cuda_text((*driver)->cuda_version()) == "13.0");
  REQUIRE((*driver)->gpus().size() == 1);
  CHECK((*driver)->gpus()[0].name == "Fake GPU");
  CHECK((*driver)->free_memory(0).value() > 0);
  const Set busy("FAKE_CUDA", "busy");
  const auto free = (*driver)->free_memory(0);
  REQUIRE(!free.ok());
  CHECK(free.error().code() == ErrorCode::kBusy);
  CHECK(says(free.error(), "nvidia-smi"));
}

TEST_CASE("a GPU of a number that is not there is an error that says which there are") {
  gpu();
  for (int wrong : {1, -1, 99}) {
    const auto missing = open_gpu(wrong);
    REQUIRE(!missing.ok());
    CHECK(missing.error().code() == ErrorCode::kUnsupported);
    CHECK(says(missing.error(), "this process sees 1 GPU, cuda:0"));
  }
  CHECK(open_gpu(0).value() == &gpu());  // the same device for every caller
}

TEST_CASE("bytes of every size go to the GPU and come back, also when they are changed right after") {
  runtime::Memory& memory = gpu().memory();
  CHECK(memory.name() == "cuda:0");
  const auto buffer_bytes = static_cast<int64_t>(Staging::kBytes);
  for (int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4096}, buffer_bytes - 1, buffer_bytes,
                        buffer_bytes + 1, 2 * buffer_bytes + 3, 5 * buffer_bytes + 7}) {
    CAPTURE(bytes);
    std::vector<std::byte> sent(static_cast<size_t>(bytes)), got(sent.size());
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 2654435761u >> 24);
    const std::vector<std::byte> wanted = sent;
    const auto block = memory.allocate(bytes).value();
    CHECK(block->host() == nullptr);
    REQUIRE(memory.write(*block, 0, sent).ok());
    std::fill(sent.begin(), sent.end(), std::byte{0});
    REQUIRE(memory.read(*block, 0, got).ok());
    CHECK(got == wanted);
    if (bytes < 10) continue;
    REQUIRE(memory.write(*block, 5, std::span(wanted).first(3)).ok());
    REQUIRE(memory.read(*block, 4, std::span(got).first(5)).ok());
    CHECK(got[0] == wanted[4]);
    CHECK(got[1] == wanted[0]);
    CHECK(got[3] == wanted[2]);
    CHECK(got[4] == wanted[8]);
  }
}

TEST_CASE("launches, copies, reads and writes run in the order of the calls") {
  Device& device = gpu();
  const auto one = device.memory().allocate(4000).value(), other = device.memory().allocate(4000).value();
  const Kernel add = kernel("add"), check = kernel("check");
  std::vector<uint32_t> numbers(1000, 7);
  REQUIRE(device.write(device.address(*one), std::as_bytes(std::span(numbers))).ok());
  REQUIRE(device.launch(add, {}, bytes_of(FakeAdd{device.address(*one).at, 1000, 3}), "leaf 1: x").ok());
  REQUIRE(device.copy(device.address(*other), device.address(*one), 4000).ok());
  REQUIRE(device.launch(add, {}, bytes_of(FakeAdd{device.address(*one).at, 1000, 90}), "leaf 2: y").ok());
  const auto event = device.record();
  REQUIRE(event.ok());
  REQUIRE(device.launch(check, {}, bytes_of(FakeAdd{device.address(*other).at, 1000, 10}), "leaf 3: z").ok());
  REQUIRE(device.copy(device.address(*other) + 4, device.address(*one), 4).ok());
  CHECK((*event)->wait().ok());
  REQUIRE(device.read(device.address(*other), std::as_writable_bytes(std::span(numbers))).ok());
  CHECK(numbers[0] == 10);
  CHECK(numbers[1] == 100);
  CHECK(device.synchronise().ok());
  CHECK(device.launch(add, {.x = 0}, {}, "no block").ok());
}

TEST_CASE(
    "shared memory beyond 48 KiB is asked for, and more than the GPU has is an error with the op's place") {
  Device& device = gpu();
  const auto block = device.memory().allocate(4).value();
  const auto argument = FakeAdd{device.address(*block).at, 1, 0};
  CHECK(device.launch(kernel("add"), {.shared_bytes = 200 << 10}, bytes_of(argument), "leaf 4: wide").ok());
  const Status more =
      device.launch(kernel("add"), {.shared_bytes = 400 << 10}, bytes_of(argument), "leaf 5: wider");
  REQUIRE(!more.ok());
  CHECK(says(more.error(), "leaf 5: wider"));
  CHECK(says(more.error(), "409600 bytes of shared memory"));
  CHECK(device.synchronise().ok());
}

TEST_CASE("a launch that the GPU refuses is an error with the op's place, and the next one works") {
  Device& device = gpu();
  const auto block = device.memory().allocate(4).value();
  const auto argument = FakeAdd{device.address(*block).at, 1, 0};
  Status refused;
  {
    const Set refuses("FAKE_CUDA", "launch");
    refused = device.launch(kernel("add"), {}, bytes_of(argument), "leaf 6: mlp");
  }
  REQUIRE(!refused.ok());
  CHECK(says(refused.error(), "cuda:0: launch of tests/fake add of leaf 6: mlp"));
  CHECK(says(refused.error(), "LAUNCH_OUT_OF_RESOURCES"));
  CHECK(device.launch(kernel("add"), {}, bytes_of(argument), "leaf 7").ok());
  CHECK(device.synchronise().ok());
}

TEST_CASE("freed blocks are taken again, and given to the driver when it has no room") {
  auto& memory = dynamic_cast<GpuMemory&>(gpu().memory());
  CHECK(memory.taken(0) == 512);
  CHECK(memory.taken(513) == 1024);
  CHECK(memory.taken(1 << 20) == 1 << 20);
  CHECK(memory.taken((1 << 20) + 1) == (1 << 20) + (1 << 17));
  const int64_t before = memory.use().now;
  auto block = memory.allocate(9'000'000).value();
  const uint64_t address = memory.address(*block);
  CHECK(memory.use().now == before + memory.taken(9'000'000));
  block.reset();
  CHECK(memory.use().now == before);
  CHECK(memory.kept_bytes() >= 9'000'000);
  block = memory.allocate(8'990'000).value();
  CHECK(memory.address(*block) == address);
  block.reset();
  memory.forget_peak();
  CHECK(memory.use().peak == before);
  block = memory.allocate(5'000'000).value();
  const int64_t most = before + memory.taken(5'000'000) + memory.taken(100);
  CHECK(memory.allocate(100).ok());
  block = memory.allocate(100).value();
  CHECK(memory.use().now == before + memory.taken(100));
  CHECK(memory.use().peak == most);
  // A block of another size is not taken, though it is hardly larger.
  block = memory.allocate(memory.taken(9'000'000) - (1 << 20)).value();
  CHECK(memory.address(*block) != address);
  block.reset();
  auto large = memory.allocate(700 << 20).value();  // of 1 GB
  large.reset();
  // Too small a part of the kept block to take it, and the driver has no room beside it: the pool is emptied.
  large = memory.allocate(500 << 20).value();
  CHECK(memory.kept_bytes() == 0);
  const auto none = memory.allocate(600 << 20);
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::kDevice);
  CHECK(says(none.error(), "cuda:0 (Fake GPU) has no room for 629.1 MB more"));
  CHECK(says(none.error(), "this process uses 53"));
  large.reset();
  CHECK(memory.allocate(600 << 20).ok());
}

TEST_CASE("a reader copies what was there when it was made, in another thread, beside later work") {
  Device& device = gpu();
  runtime::Memory& memory = device.memory();
  const auto one = memory.allocate(12 << 20).value(), other = memory.allocate(4000).value();
  const int64_t count = one->bytes() / 4;
  std::vector<uint32_t> numbers(static_cast<size_t>(count), 7), got(numbers.size());
  const auto read = [&] {
    REQUIRE(memory.write(*one, 0, std::as_bytes(std::span(numbers))).ok());
    REQUIRE(
        device.launch(kernel("add"), {}, bytes_of(FakeAdd{device.address(*one).at, count, 3}), "leaf").ok());
    auto reader = memory.reader();
    REQUIRE(reader.ok());
    REQUIRE(
        device.launch(kernel("add"), {}, bytes_of(FakeAdd{device.address(*other).at, 1000, 1}), "next").ok());
    Status copied;
    std::thread([&] {
      copied = (*reader)->read(*one, 4, std::as_writable_bytes(std::span(got).subspan(1)));
    }).join();
    REQUIRE(copied.ok());
    return got[1] == 10 && got.back() == 10;
  };
  CHECK(read());
  CHECK(read());
  // Control: a stream that does not wait for the other one reads what was there before.
  std::fill(got.begin(), got.end(), 0);
  const Set fault("FAKE_CUDA", "unordered");
  CHECK(!read());
  CHECK(device.synchronise().ok());
}

TEST_CASE("threads share a GPU: each finds its own bytes") {
  Device& device = gpu();
  const Kernel add = kernel("add");
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        const auto block = device.memory().allocate(4000).value();
        std::vector<uint32_t> numbers(1000, t);
        bool well = device.memory().write(*block, 0, std::as_bytes(std::span(numbers))).ok();
        well = well &&
               device.launch(add, {}, bytes_of(FakeAdd{device.address(*block).at, 1000, 5}), "leaf").ok();
        well = well && device.memory().read(*block, 0, std::as_writable_bytes(std::span(numbers))).ok();
        if (!well || numbers[0] != t + 5 || numbers[999] != t + 5) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("text that does not compile, and a kernel that it lacks, are errors with its name") {
  const auto wrong = gpu().load("routines/wrong", "// fake kernels\nsyntax error");
  REQUIRE(!wrong.ok());
  CHECK(wrong.error().code() == ErrorCode::kInternal);
  CHECK(says(wrong.error(), "device text routines/wrong does not compile"));
  CHECK(says(wrong.error(), "routines/wrong.cu(1): error: expected a declaration"));
  const auto code = gpu().load("tests/fake", kText);
  REQUIRE(code.ok());
  const auto none = code.value()->kernel("multiply");
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::kNotFound);
  CHECK(says(none.error(), "tests/fake has no kernel multiply"));
}

TEST_CASE("compiled text is kept on disk for its owner alone, and an entry is checked before use") {
  const PrivateFolder place = folder();
  CodeCache cache(place.path());
  const std::string key = CodeCache::key("nvrtc 13.0 1", "-ftz=true", "text");
  for (const auto& [compiler, options, text] :
       {std::tuple("nvrtc 13.1 1", "-ftz=true", "text"), std::tuple("nvrtc 13.0 1", "-ftz=false", "text"),
        std::tuple("nvrtc 13.0 1", "-ftz=true", "texts")})
    CHECK(CodeCache::key(compiler, options, text) != key);
  CHECK(!cache.find(key));
  const std::string code("code with \0 in it", 17);
  cache.keep(key, code);
  CHECK(cache.find(key) == code);
  const fs::path entry = place.path() / "cuda" / (key + ".cubin");
  struct stat facts{};
  REQUIRE(stat(entry.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
  REQUIRE(stat(entry.parent_path().c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0700);

  SUBCASE("one that others can read") { REQUIRE(chmod(entry.c_str(), 0644) == 0); }
  SUBCASE("a folder that others can write") { REQUIRE(chmod(entry.parent_path().c_str(), 0777) == 0); }
  SUBCASE("one that is cut off") { fs::resize_file(entry, fs::file_size(entry) - 1); }
  SUBCASE("an empty one") { fs::resize_file(entry, 0); }
  SUBCASE("a byte that was changed") {
    std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(entry) - 70));
    file.put('X');
  }
  SUBCASE("the whole entry of another key") {
    const std::string other = CodeCache::key("nvrtc 13.0 1", "-ftz=true", "another text");
    cache.keep(other, "other code");
    fs::rename(place.path() / "cuda" / (other + ".cubin"), entry);
  }
  SUBCASE("a link to one") {
    fs::rename(entry, place.path() / "moved");
    fs::create_symlink(place.path() / "moved", entry);
  }
  CHECK(!cache.find(key));
}

TEST_CASE("a cache that cannot be written is no error: text is compiled at every start") {
  const PrivateFolder place = folder();
  const fs::path file = place.path() / "file";
  REQUIRE(write_text_file(file, "no folder").ok());
  CodeCache in_file(file), nowhere("");
  for (CodeCache* cache : {&in_file, &nowhere}) {
    cache->keep("key", "code");
    CHECK(!cache->find("key"));
  }
}

TEST_CASE("NVRTC is looked for where OSTRO_NVRTC says, else in wheels and toolkits") {
  const PrivateFolder place = folder();
  const auto put = [&](const char* path) {
    fs::create_directories((place.path() / path).parent_path());
    REQUIRE(write_text_file(place.path() / path, "").ok());
    return (place.path() / path).string();
  };
  const std::string wheel13 = put("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
  const std::string wheel12 = put("venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string user =
      put("home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  const std::string toolkit = put("toolkit/lib64/libnvrtc.so.12");
  const std::string beside = put("driver/libnvrtc.so.13");
  const Set path("PATH", "/nowhere"), home("HOME", (place.path() / "home").string()),
      unset("OSTRO_NVRTC", ""), env("VIRTUAL_ENV", (place.path() / "venv").string()),
      conda("CONDA_PREFIX", "/nowhere"), cuda("CUDA_HOME", (place.path() / "toolkit").string());
  std::vector<std::string> found = nvrtc_candidates((place.path() / "driver/libcuda.so.1").string());
  std::erase_if(found, [&](const std::string& f) { return f.starts_with("/usr") || !f.starts_with("/"); });
  CHECK(found == std::vector<std::string>{beside, wheel13, wheel12, user, toolkit});
  {
    const Set chosen("OSTRO_NVRTC", (place.path() / "toolkit/lib64").string());
    CHECK(nvrtc_candidates("") == std::vector<std::string>{toolkit});
  }
  const Set chosen("OSTRO_NVRTC", "/missing/libnvrtc.so");
  CHECK(nvrtc_candidates("") == std::vector<std::string>{"/missing/libnvrtc.so"});
  const auto none = Nvrtc::open("", 12040, 90);
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::kUnsupported);
  CHECK(says(none.error(), "/missing/libnvrtc.so"));
  CHECK(says(none.error(), "pip install nvidia-cuda-nvrtc-cu12"));
}

TEST_CASE("an NVRTC that does not fit the driver or the GPU is named, with the reason") {
  const Set path("PATH", "/nowhere");
  const auto reason = [&](const char* fault, int cuda, int capability) {
    const Set chosen("OSTRO_NVRTC", "libnvrtc.so.13");
    const Set set("FAKE_NVRTC", fault);
    const auto opened = Nvrtc::open("", cuda, capability);
    return opened.ok() ? "" : opened.error().message();
  };
  CHECK(reason("", 13000, 90).empty());
  CHECK(reason("no_90", 13000, 80).empty());
  CHECK(reason("old", 13000, 90).find("(NVRTC 11.8) is older than 12.0") != std::string::npos);
  CHECK(reason("new", 13000, 90).find("(NVRTC 14.0) is too new: the driver runs CUDA 13.0") !=
        std::string::npos);
  CHECK(reason("", 12080, 90).find("is too new: the driver runs CUDA 12.8") != std::string::npos);
  CHECK(reason("no_90", 13000, 90).find("does not compile for compute capability 9.0") != std::string::npos);
  CHECK(Nvrtc::architecture(90) == "sm_90a");
  CHECK(Nvrtc::architecture(75) == "sm_75");
}

// The last test: nothing of the GPU can be used afterwards.
TEST_CASE(
    "when a kernel fails, the next call says which ops ran, and all later ones end with the same error") {
  Device& device = gpu();
  const auto block = device.memory().allocate(4).value();
  const std::vector<uint32_t> zero(1);
  REQUIRE(device.write(device.address(*block), std::as_bytes(std::span(zero))).ok());
  REQUIRE(device.synchronise().ok());
  const auto argument = FakeAdd{device.address(*block).at, 1, 1};
  const Kernel add = kernel("add");
  REQUIRE(device.launch(kernel("check"), {}, bytes_of(argument), "leaf 8: first").ok());
  REQUIRE(device.launch(add, {}, bytes_of(argument), "leaf 9: last").ok());
  std::vector<std::byte> got(4);
  const Status failed = device.read(device.address(*block), got);
  REQUIRE(!failed.ok());
  CHECK(says(failed.error(), "running: one of 2 ops from leaf 8: first to leaf 9: last"));
  CHECK(says(failed.error(), "LAUNCH_FAILED"));
  CHECK(says(failed.error(), "the same command goes on from the newest checkpoint"));
  const std::string text = failed.error().message();
  CHECK(device.synchronise().error().message() == text);
  CHECK(device.launch(add, {}, bytes_of(argument), "leaf 10").error().message() == text);
  CHECK(device.memory().allocate(4).error().message() == text);
  CHECK(device.write(device.address(*block), got).error().message() == text);
  CHECK(device.load("tests/another", "// fake kernels\n//").error().message() == text);
}

}  // namespace
}  // namespace ostro::gpu
