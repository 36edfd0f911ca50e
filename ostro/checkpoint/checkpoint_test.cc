// Checkpoints saved, damaged, interrupted and restored.
#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>

#include "ostro/base/log_capture_for_test.h"
#include "ostro/checkpoint/async_saver.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/restore.h"
#include "ostro/checkpoint/save.h"
#include "ostro/io/files/faulty_file_system.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/memory_file_system.h"

using namespace ostro;
using namespace ostro::checkpoint;

namespace {

using Tree = std::map<std::string, std::vector<std::byte>>;

std::vector<TensorSpec> specs() {
  return {{"model/layers/w", "f32", {"layers", "embed", "mlp"}, {2, 5, 6}, {1, 2, 6}},
          {"model/norm", "bf16", {"embed"}, {5}, {}},
          {"optimizer/m/norm", "f32", {"embed"}, {5}, {2}},
          {"step", "i64", {}, {}, {}},
          {"mask", "bool", {"embed"}, {5}, {}},
          {"nothing", "f32", {"embed", "none"}, {5, 0}, {}}};
}

// A state that differs in every byte for every seed.
Tree tree_of(uint8_t seed) {
  Tree tree;
  for (const TensorSpec& spec : specs()) {
    std::vector<std::byte> bytes(static_cast<size_t>(spec.bytes()));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(seed + 7 * i);
    tree[spec.path] = std::move(bytes);
  }
  return tree;
}

std::vector<Tensor> tensors_of(const Tree& tree) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : specs()) tensors.push_back({spec, tree.at(spec.path), nullptr});
  return tensors;
}

Info info_of(int64_t step, Kind kind = Kind::kTemporary) {
  return {.step = step, .kind = kind, .numerics_version = "1", .config = "seed: 1\n", .chain_head = "abc"};
}

Result<Saved> save_tree(io::FileSystem& fs, int64_t step, const Tree& tree, Kind kind = Kind::kTemporary,
                        int threads = 1) {
  return save(fs, "run/checkpoints", info_of(step, kind), tensors_of(tree), {.threads = threads});
}

// The newest state, and what a restore said on the way.
Result<Restored> restore_tree(io::FileSystem& fs, Tree& tree, std::string_view pattern = "**",
                              int threads = 1) {
  tree.clear();
  return restore_latest(
      fs, "run/checkpoints",
      [&](const TensorSpec& spec) -> Result<std::span<std::byte>> {
        auto& bytes = tree[spec.path];
        bytes.assign(static_cast<size_t>(spec.bytes()), std::byte{0});
        return std::span<std::byte>(bytes);
      },
      pattern, threads);
}

void collect_files(io::FileSystem& fs, std::vector<std::string>& files) {
  files = *fs.glob("run/checkpoints/**");
}

}  // namespace

TEST_CASE("checkpoint: a state comes back, with its manifest") {
  io::MemoryFileSystem fs;
  const Tree tree = tree_of(3);
  const auto saved = save_tree(fs, 42, tree, Kind::kPermanent, 3);
  REQUIRE_MESSAGE(saved.ok(), (saved.ok() ? "" : saved.error().message()));
  CHECK(saved->path == "run/checkpoints/step-00000042");
  CHECK(saved->name == state_name(tensors_of(tree), 3));
  Tree back;
  const auto restored = restore_tree(fs, back, "**", 3);
  REQUIRE_MESSAGE(restored.ok(), (restored.ok() ? "" : restored.error().message()));
  CHECK(back == tree);
  CHECK(restored->passed_over.empty());
  CHECK(restored->manifest.info == info_of(42, Kind::kPermanent));
  CHECK(restored->manifest.name == saved->name);
  CHECK(restored->manifest.tensors[0].axes == std::vector<std::string>{"layers", "embed", "mlp"});
  CHECK(restored->manifest.cells[0].size() == 6);
  // Everything is durable: losing power after a save loses nothing.
  fs.crash(0);
  CHECK(restore_tree(fs, back).ok());
  CHECK(back == tree);
}

TEST_CASE("checkpoint: the name is a function of content, paths, types and order, not of files or threads") {
  const Tree tree = tree_of(1);
  const std::string name = state_name(tensors_of(tree), 1);
  CHECK(name == state_name(tensors_of(tree), 4));
  io::MemoryFileSystem fs;
  const auto saved = save(fs, "a", info_of(1), tensors_of(tree), {.threads = 1, .max_chunk_bytes = 8});
  CHECK(saved->name == name);
  check_ok(Checkpoint::open(fs, saved->path)->verify());
  auto changed = tensors_of(tree);
  std::swap(changed[0], changed[1]);
  CHECK(state_name(changed, 1) != name);
  changed = tensors_of(tree);
  changed[1].spec.path = "model/norm2";
  CHECK(state_name(changed, 1) != name);
  changed = tensors_of(tree);
  changed[1].spec.axes = {"mlp"};
  CHECK(state_name(changed, 1) != name);
  // Names stand in the lines that are hashed.
  changed[1].spec.axes = {"mlp\n"};
  const Status broken = validate(std::vector<TensorSpec>{changed[1].spec}, "here");
  CHECK((!broken.ok() && broken.error().message().find("control characters") != std::string::npos));
  Tree flipped = tree;
  flipped["mask"][2] ^= std::byte{1};
  CHECK(state_name(tensors_of(flipped), 1) != name);
}

TEST_CASE("checkpoint: the hash of cells is that of their dense bytes in lexicographic order") {
  const TensorSpec spec{"w", "u32", {"a", "b"}, {3, 2}, {2, 1}};
  const std::vector<uint32_t> values = {0, 1, 2, 3, 4, 5};
  const std::vector<std::vector<uint32_t>> cells = {{0, 2}, {1, 3}, {4}, {5}};
  CellHashes expected;
  for (const auto& cell : cells) expected.push_back(sha256(std::as_bytes(std::span(cell))));
  const Tensor tensor{spec, std::as_bytes(std::span(values)), nullptr};
  const Sha256Digest array = array_hash(expected);
  CHECK(state_name(std::span(&tensor, 1), 2) == sha256_hex("w u32[a:3, b:2] " + to_hex(array) + "\n"));
}

TEST_CASE("checkpoint: cells are divided into chunks below the limit") {
  CHECK(chunk_of_cell({8, 8}, 4, 256) == Extents{8, 8});
  CHECK(chunk_of_cell({8, 8}, 4, 255) == Extents{4, 8});
  CHECK(chunk_of_cell({7, 8}, 4, 16) == Extents{1, 4});
  CHECK(chunk_of_cell({3, 3}, 4, 1) == Extents{1, 1});
}

TEST_CASE("checkpoint: part of a tree, and boxes across cells") {
  io::MemoryFileSystem fs;
  const Tree tree = tree_of(9);
  REQUIRE(save_tree(fs, 1, tree).ok());
  Tree part;
  REQUIRE(restore_tree(fs, part, "model/**").ok());
  CHECK(part.size() == 2);
  CHECK(part.at("model/norm") == tree.at("model/norm"));

  const auto checkpoint = Checkpoint::open(fs, "run/checkpoints/step-00000001");
  const int64_t w = checkpoint->find("model/layers/w");
  CHECK(checkpoint->find("model/layers") == -1);
  const Extents start = {0, 1, 2}, shape = {2, 3, 4}, zero = {0, 0, 0};
  std::vector<std::byte> box(96), expected(96);
  check_ok(checkpoint->read_box(w, start, shape, box));
  io::copy_box(tree.at("model/layers/w"), std::vector<int64_t>{2, 5, 6}, start, expected, shape, zero, shape,
               4);
  CHECK(box == expected);

  // What the caller cannot place is the caller's error, not damage.
  const auto refused =
      restore_latest(fs, "run/checkpoints", [](const TensorSpec&) -> Result<std::span<std::byte>> {
        return invalid_argument("embed is 5 in the file, but 6 in the model");
      });
  CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
  CHECK(refused.error().message().find("embed is 5") != std::string::npos);
}

TEST_CASE("checkpoint: what cannot be saved is refused") {
  io::MemoryFileSystem fs;
  const std::vector<float> values = {1, 2};
  const auto attempt = [&](std::vector<TensorSpec> list) {
    std::vector<Tensor> tensors;
    for (const TensorSpec& spec : list) tensors.push_back({spec, std::as_bytes(std::span(values)), nullptr});
    const auto saved = save(fs, "r", info_of(1), tensors);
    return saved.ok() ? std::string("saved") : saved.error().message();
  };
  CHECK(attempt({{"a/b", "f32", {"x"}, {2}, {}}}) == "saved");
  for (const char* path :
       {"", "/a", "a/", "a//b", "../a", "a/./b", "zarr.json", "__x", "a b", "c", "a/\xc3\xa4"}) {
    CHECK(attempt({{path, "f32", {"x"}, {2}, {}}}).find("not a path") != std::string::npos);
  }
  CHECK(attempt({{"a", "f32", {"x"}, {2}, {}}, {"a", "f32", {"x"}, {2}, {}}}).find("taken") !=
        std::string::npos);
  CHECK(attempt({{"a/b", "f32", {"x"}, {2}, {}}, {"a-", "f32", {"x"}, {2}, {}}, {"a", "f32", {"x"}, {2}, {}}})
            .find("lies below") != std::string::npos);
  CHECK(attempt({{"a", "f8", {"x"}, {2}, {}}}) != "saved");
  CHECK(attempt({{"a", "f32", {"x"}, {3}, {}}}).find("8 bytes given") != std::string::npos);
  CHECK(attempt({{"a", "f32", {}, {2}, {}}}) != "saved");
}

TEST_CASE("checkpoint: a damaged newest one is passed over, loudly") {
  io::MemoryFileSystem fs;
  const Tree older = tree_of(1), newer = tree_of(2);
  REQUIRE(save_tree(fs, 10, older).ok());
  REQUIRE(save_tree(fs, 20, newer).ok());
  std::string& chunk = *fs.content("run/checkpoints/step-00000020/model/layers/w/c.1.2.0");
  chunk[3] = static_cast<char>(chunk[3] ^ 1);
  Tree tree;
  LogCapture log;
  auto restored = restore_tree(fs, tree);
  REQUIRE(restored.ok());
  CHECK(tree == older);
  CHECK(restored->manifest.info.step == 10);
  REQUIRE(restored->passed_over.size() == 1);
  CHECK(restored->passed_over[0].find("step-00000020/model/layers/w: the bytes of cell 5") !=
        std::string::npos);
  CHECK(log.lines.find("step-00000020 is damaged and is passed over") != std::string::npos);
  // A part that does not touch the damage restores from the newest.
  CHECK(restore_tree(fs, tree, "model/norm")->manifest.info.step == 20);

  check_ok(fs.remove("run/checkpoints/step-00000010/manifest.json"));
  CHECK(restore_tree(fs, tree).error().message().find("none of the 2 checkpoints can be used") !=
        std::string::npos);
  check_ok(fs.remove_all("run/checkpoints"));
  CHECK(restore_tree(fs, tree).error().code() == ErrorCode::kNotFound);
}

TEST_CASE("checkpoint: what a caller refuses is passed over like damage, its errors are final") {
  io::MemoryFileSystem fs;
  const Tree older = tree_of(1), newer = tree_of(2);
  REQUIRE(save_tree(fs, 10, older).ok());
  REQUIRE(save_tree(fs, 20, newer).ok());
  Tree tree;
  const auto restore = [&](const Checks& checks) {
    tree.clear();
    return restore_latest(
        fs, "run/checkpoints",
        [&](const TensorSpec& spec) -> Result<std::span<std::byte>> {
          tree[spec.path].resize(static_cast<size_t>(spec.bytes()));
          return std::span<std::byte>(tree[spec.path]);
        },
        "**", 1, checks);
  };
  const auto newest_refused = [](const Manifest& manifest, const std::string& path) {
    return manifest.info.step == 20 ? Status(corrupt(path + ": not this one")) : Status();
  };
  LogCapture log;
  for (const Checks& checks : {Checks{newest_refused, {}}, Checks{{}, newest_refused}}) {
    const auto restored = restore(checks);
    REQUIRE(restored.ok());
    CHECK(tree == older);
    REQUIRE(restored->passed_over.size() == 1);
    CHECK(restored->passed_over[0].find("step-00000020: not this one") != std::string::npos);
  }
  CHECK(log.lines.find("step-00000020 is refused and is passed over") != std::string::npos);
  // The manifest is asked about before anything is read, the tensors when all of them are there.
  size_t before = 99, behind = 0;
  const Checks looking = {[&](const Manifest&, const std::string&) -> Result<Status> {
                            before = tree.size();
                            return Status();
                          },
                          [&](const Manifest&, const std::string&) {
                            behind = tree.size();
                            return Status();
                          }};
  REQUIRE(restore(looking).ok());
  CHECK(before == 0);
  CHECK(behind == specs().size());
  const Checks final = {
      [](const Manifest&, const std::string&) -> Result<Status> { return corrupt("no chain"); }, {}};
  CHECK(restore(final).error().message() == "no chain");
}

TEST_CASE("checkpoint: every flipped bit and every cut of every file is caught or changes nothing" *
          doctest::test_suite("one-thread")) {
  io::MemoryFileSystem fs;
  const Tree tree = tree_of(5);
  REQUIRE(save_tree(fs, 7, tree).ok());
  std::vector<std::string> files;
  collect_files(fs, files);
  CHECK(files.size() > 15);
  LogCapture log;
  Tree back;
  int64_t caught = 0;
  for (const std::string& file : files) {
    CAPTURE(file);
    const std::string good = *fs.read_file(file);
    const bool is_manifest = file.ends_with("manifest.json");
    const bool is_group = !file.ends_with("/zarr.json") ? false : good.find("\"group\"") != std::string::npos;
    const auto try_content = [&](std::string content, bool must_fail) {
      *fs.content(file) = std::move(content);
      const auto restored = restore_tree(fs, back);
      if (restored.ok()) CHECK(back == tree);
      if (must_fail) CHECK_FALSE(restored.ok());
      caught += !restored.ok();
    };
    const size_t step = is_manifest ? 7 : 1;
    for (size_t size = 0; size < good.size(); size += step) {
      // A metadata file may lose its last line break, and a group's metadata is not read.
      try_content(good.substr(0, size), is_manifest || (!is_group && size + 1 < good.size()));
    }
    for (size_t at = 0; at < good.size(); at += step) {
      std::string flipped = good;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      try_content(std::move(flipped), is_manifest);
    }
    *fs.content(file) = good;
  }
  CHECK(caught > 1000);
  CHECK(restore_tree(fs, back).ok());
}

TEST_CASE("checkpoint: a save interrupted at any operation leaves the old or the new state, for every fault" *
          doctest::test_suite("one-thread")) {
  const Tree older = tree_of(1), newer = tree_of(2);
  int64_t operations = 0;
  LogCapture log;
  // The second save is of a later step, or of the same step with another state (a run that was rewound).
  for (const int64_t second_step : {20, 10}) {
    {
      io::MemoryFileSystem memory;
      io::FaultyFileSystem fs(memory);
      REQUIRE(save_tree(memory, 10, older).ok());
      REQUIRE(save(fs, "run/checkpoints", info_of(second_step), tensors_of(newer), {.threads = 1}).ok());
      operations = fs.writes();
    }
    CHECK(operations > 40);
    for (const io::Fault fault : {io::Fault::kCrash, io::Fault::kDiskFull, io::Fault::kSyncError}) {
      bool old_seen = false, new_seen = false;
      const uint64_t seeds = fault == io::Fault::kCrash ? 3 : 1;
      for (int64_t i = 0; i < operations * static_cast<int64_t>(seeds); ++i) {
        const int64_t at = i / static_cast<int64_t>(seeds);
        io::MemoryFileSystem memory;
        REQUIRE(save_tree(memory, 10, older).ok());
        io::FaultyFileSystem fs(memory);
        fs.inject(fault, at);
        const auto saved =
            save(fs, "run/checkpoints", info_of(second_step), tensors_of(newer), {.threads = 1});
        memory.crash(static_cast<uint64_t>(i) % seeds == 0 ? 0 : static_cast<uint64_t>(i));
        Tree tree;
        const auto restored = restore_tree(memory, tree);
        REQUIRE_MESSAGE(restored.ok(), (restored.ok() ? "" : restored.error().message()));
        CHECK(restored->passed_over.empty());
        const bool is_new = tree == newer;
        CHECK((is_new || tree == older));
        if (saved.ok()) CHECK(is_new);
        old_seen = old_seen || !is_new;
        new_seen = new_seen || is_new;
        // The next save cleans up and works.
        REQUIRE(save_tree(memory, second_step, newer).ok());
        REQUIRE(restore_tree(memory, tree).ok());
        CHECK(tree == newer);
        const auto entries = memory.list("run/checkpoints");
        for (const io::DirEntry& entry : *entries) CHECK(entry.name.size() == std::strlen("step-00000010"));
      }
      CHECK(old_seen);
      // Of a new step the last operation alone decides; of a replaced one several come after the swap.
      if (fault == io::Fault::kCrash && second_step == 10) CHECK(new_seen);
    }
  }
}

TEST_CASE("checkpoint: removal is whole or not at all, and old temporary ones are pruned") {
  io::MemoryFileSystem fs;
  for (const int64_t step : {100, 200, 300, 400, 500}) {
    REQUIRE(save_tree(fs, step, tree_of(1), step == 200 ? Kind::kPermanent : Kind::kTemporary).ok());
  }
  REQUIRE(save_tree(fs, 600, tree_of(1)).ok());
  fs.content("run/checkpoints/step-00000600/manifest.json")->pop_back();
  // Those after the step that was saved last are another run's, or were refused: they count for nothing.
  check_ok(prune_checkpoints(fs, "run/checkpoints", 100));
  CHECK(list_checkpoints(fs, "run/checkpoints")->size() == 6);
  check_ok(prune_checkpoints(fs, "run/checkpoints", 600));
  check_ok(remove_checkpoint(fs, "run/checkpoints/step-00000600"));
  std::vector<int64_t> steps;
  const auto left = list_checkpoints(fs, "run/checkpoints");
  for (const Entry& entry : *left) steps.push_back(entry.step);
  CHECK(steps == std::vector<int64_t>{200, 400, 500});
  // Saved again for a lesser reason, a permanent one stays permanent.
  REQUIRE(save_tree(fs, 200, tree_of(1)).ok());
  CHECK(read_manifest(fs, "run/checkpoints/step-00000200")->info.kind == Kind::kPermanent);

  for (int64_t at = 0; at < 8; ++at) {
    io::FaultyFileSystem faulty(fs);
    faulty.inject(io::Fault::kCrash, at);
    const Status status = remove_checkpoint(faulty, "run/checkpoints/step-00000500");
    CHECK_FALSE(status.ok());
    fs.crash(static_cast<uint64_t>(at));
    Tree tree;
    LogCapture log;
    const auto restored = restore_tree(fs, tree);
    REQUIRE(restored.ok());
    CHECK(restored->passed_over.empty());
    check_ok(remove_leftovers(fs, "run/checkpoints"));
    REQUIRE(save_tree(fs, 500, tree_of(1)).ok());
  }
  CHECK(list_checkpoints(fs, "nowhere")->empty());
}

TEST_CASE("checkpoint: manifests of another time") {
  io::MemoryFileSystem fs;
  REQUIRE(save_tree(fs, 1, tree_of(1)).ok());
  const Manifest manifest = *read_manifest(fs, "run/checkpoints/step-00000001");
  CHECK(*parse_manifest(manifest_json(manifest), "m") == manifest);
  const auto edited = [&](const std::string& from, const std::string& to) {
    std::string text = manifest_json(manifest);
    text.replace(text.find(from), from.size(), to);
    const std::string body = text.substr(0, text.rfind(",\n  \"checksum\""));
    return parse_manifest(body + ",\n  \"checksum\": \"" + sha256_hex(body) + "\"\n}\n", "m");
  };
  CHECK(edited("\"step\": 1", "\"step\": 2")->info.step == 2);
  CHECK(edited("\"format_version\": 1", "\"format_version\": 2").error().code() == ErrorCode::kUnsupported);
  CHECK(edited("\"step\": 1", "\"step\": -1").error().message().find("step") != std::string::npos);
  CHECK(edited("\"path\": \"mask\"", "\"path\": \"../mask\"").error().code() == ErrorCode::kCorrupt);
  CHECK(edited("\"path\": \"mask\"", "\"path\": \"task\"").error().message().find("name") !=
        std::string::npos);
  CHECK(edited("\"kind\"", "\"sort\"").error().message() == "m: \"kind\" is missing");
}

TEST_CASE("checkpoint: in the background, errors come with the next call") {
  io::MemoryFileSystem memory;
  io::FaultyFileSystem fs(memory);
  {
    AsyncSaver saver(fs, "run/checkpoints");
    CHECK(saver.wait()->has_value() == false);
    for (int64_t step = 1; step <= 5; ++step) {
      Tree tree = tree_of(static_cast<uint8_t>(step));
      check_ok(saver.start(info_of(step), tensors_of(tree)));
      tree.clear();  // the snapshot is its own
    }
    const auto saved = saver.wait();
    REQUIRE(saved.ok());
    CHECK((*saved)->path == "run/checkpoints/step-00000005");
    CHECK_FALSE(saver.running());
    CHECK(list_checkpoints(memory, "run/checkpoints")->size() == 2);

    const auto owner = std::make_shared<Tree>(tree_of(6));
    std::vector<Tensor> tensors = tensors_of(*owner);
    for (Tensor& tensor : tensors) tensor.owner = owner;
    check_ok(saver.start(info_of(6), tensors));
    REQUIRE(saver.wait().ok());

    fs.inject(io::Fault::kDiskFull, 30);
    check_ok(saver.start(info_of(7), tensors));
    const Status late = saver.start(info_of(8), tensors);
    CHECK(late.error().message().find("No space left") != std::string::npos);
    CHECK(saver.wait().ok());  // told once
    fs.heal();
    check_ok(saver.start(info_of(8), tensors));
  }
  Tree tree;
  CHECK(restore_tree(memory, tree)->manifest.info.step == 8);
  CHECK(tree == tree_of(6));
}

// Run by the test below in a process of its own, which reads OSTRO_FAILPOINT.
TEST_CASE("checkpoint child: saves step 2" * doctest::skip()) {
  AsyncSaver saver(io::local_file_system(), ::getenv("OSTRO_TEST_CHECKPOINTS"));
  check_ok(saver.start(info_of(2), tensors_of(tree_of(2))));
  CHECK(saver.wait().ok());
}

TEST_CASE("checkpoint: killed at the failpoints on a real disk, the state before is whole") {
  char root[] = "/tmp/ostro_checkpoint_XXXXXX";
  REQUIRE(::mkdtemp(root) != nullptr);
  io::FileSystem& fs = io::local_file_system();
  const std::string checkpoints = std::string(root) + "/checkpoints";
  REQUIRE(save(fs, checkpoints, info_of(1), tensors_of(tree_of(1))).ok());
  for (const char* spec : {"snapshot", "array_write:1", "array_write:4", "manifest", ""}) {
    CAPTURE(spec);
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("OSTRO_FAILPOINT", spec, 1);
      ::setenv("OSTRO_TEST_CHECKPOINTS", checkpoints.c_str(), 1);
      ::execl("/proc/self/exe", "checkpoint_test", "--no-skip", "--minimal", "--test-case=checkpoint child*",
              nullptr);
      ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    CHECK(killed == (*spec != '\0'));
    const auto list = list_checkpoints(fs, checkpoints);
    CHECK(list->size() == (killed ? 1 : 2));
    check_ok(Checkpoint::open(fs, list->back().path)->verify());
  }
  CHECK(fs.list(checkpoints)->size() == 2);
  check_ok(fs.remove_all(root));
}
