// Buffers: places, views, and who may write.
#include "ostro/runtime/buffer.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <numeric>

#include "ostro/base/aligned.h"

namespace ostro::runtime {
namespace {

// A memory without addresses.
class Vault final : public Memory {
 public:
  struct Locked final : Block {
    Locked(Memory& memory, int64_t bytes)
        : Block(memory, bytes, nullptr), storage(static_cast<size_t>(bytes)) {}
    std::vector<std::byte> storage;
  };
  std::string name() const override { return "vault"; }
  Result<std::shared_ptr<Block>> allocate(int64_t bytes) override {
    if (bytes > 1000) return unsupported("the vault has no room");
    return std::shared_ptr<Block>(std::make_shared<Locked>(*this, bytes));
  }
  Status write(Block& block, int64_t at, std::span<const std::byte> from) override {
    std::memcpy(dynamic_cast<Locked&>(block).storage.data() + at, from.data(), from.size());
    return Status();
  }
  Status read(const Block& block, int64_t at, std::span<std::byte> to) const override {
    std::memcpy(to.data(), dynamic_cast<const Locked&>(block).storage.data() + at, to.size());
    return Status();
  }
};

Vault& vault() {
  static Vault v;
  return v;
}

Vault& second_vault() {
  static Vault v;
  return v;
}

Buffer counted(int64_t rows, int64_t columns) {
  Buffer b = Buffer::empty({ir::DType::i32, {{"row", rows}, {"column", columns}}});
  std::iota(b.mutable_as<int32_t>().begin(), b.mutable_as<int32_t>().end(), 0);
  return b;
}

std::vector<int32_t> values(const Buffer& b) { return {b.as<int32_t>().begin(), b.as<int32_t>().end()}; }

// The signal that ends a process that does this; 0: none.
int signal_of(const std::function<void()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    close(2);
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST_CASE("rows are a view of the same block") {
  Buffer all = counted(5, 3);
  const Buffer two = all.rows(1, 2);
  CHECK(two.shape().str() == "i32[row:2, column:3]");
  CHECK(values(two) == std::vector<int32_t>{3, 4, 5, 6, 7, 8});
  CHECK(values(two.rows(1, 1)) == std::vector<int32_t>{6, 7, 8});
  CHECK(two.bytes().data() == all.bytes().data() + 12);
  all.mutable_as<int32_t>()[3] = 70;
  CHECK(two.as<int32_t>()[0] == 70);
  CHECK(all.rows(5, 0).bytes().empty());
  CHECK(all.rows(0, 5).same_place(all));
  CHECK(!two.same_place(all));
  CHECK(reinterpret_cast<uintptr_t>(all.bytes().data()) % kAlignment == 0);
  CHECK(signal_of([&] { (void)all.rows(4, 2); }) == SIGABRT);
}

TEST_CASE("a handle is unique when no other handle or view of its block is left") {
  Buffer all = counted(4, 2);
  CHECK(all.unique());
  {
    const Buffer copy = all;
    CHECK(!all.unique());
    CHECK(!copy.unique());
  }
  CHECK(all.unique());
  Buffer last = all.rows(3, 1);
  CHECK(!all.unique());
  CHECK(!last.unique());
  all = Buffer();
  CHECK(last.unique());  // nothing else reads the block, so this part may be written in place
  CHECK(values(last) == std::vector<int32_t>{6, 7});
}

TEST_CASE("elements move between memories, views too") {
  const Buffer near = counted(4, 2).rows(1, 2);
  const Result<Buffer> far = near.to(vault());
  REQUIRE(far.ok());
  CHECK(far->memory().name() == "vault");
  CHECK(!far->on_host());
  CHECK(values(far->to_host().value()) == std::vector<int32_t>{2, 3, 4, 5});
  CHECK(values(far->rows(1, 1).to_host().value()) == std::vector<int32_t>{4, 5});
  CHECK(values(far->to(second_vault()).value().to_host().value()) == values(near));
  CHECK(far->to(vault()).value().same_place(*far));  // no copy
  CHECK(near.to_host().value().same_place(near));
  const auto all = all_to({near, *far}, host_memory());
  REQUIRE(all.ok());
  CHECK((*all)[0].same_place(near));
  CHECK(values((*all)[1]) == values(near));
  CHECK(counted(100, 10).to(vault()).error().message() == "the vault has no room");
}

TEST_CASE("a scalar is read from wherever it is; bytes of another memory have no address") {
  const Buffer near = Buffer::scalar(ir::DType::f64, 2.5);
  const Buffer far = near.to(vault()).value();
  CHECK(near.scalar<double>().value() == 2.5);
  CHECK(far.scalar<double>().value() == 2.5);
  CHECK(signal_of([&] { (void)near.bytes(); }) == 0);
  CHECK(signal_of([&] { (void)far.bytes(); }) == SIGABRT);
  CHECK(signal_of([&] { (void)far.item<double>(); }) == SIGABRT);
  CHECK(signal_of([&] { (void)Buffer().bytes(); }) == SIGABRT);
  CHECK(signal_of([&] { (void)far.scalar<float>(); }) == SIGABRT);
}

}  // namespace
}  // namespace ostro::runtime
