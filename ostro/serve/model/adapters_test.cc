#include "ostro/serve/model/adapters.h"

#include <doctest/doctest.h>

#include "ostro/numerics/arrays.h"

namespace ostro::serve {
namespace {

TEST_CASE("adapters are named once, and where they are") {
  const auto all = parse_adapters({"a=runs/x", "b.1-c_=d=e"}, "--adapter").value();
  CHECK(all.size() == 2);
  CHECK(all[1].name == "b.1-c_");
  CHECK(all[1].path == "d=e");
  for (const std::string word : {"", "a", "=x", "a=", "a b=x", "a:b=x", "a/b=x"}) {
    const auto refused = parse_adapters({word}, "--adapter");
    CHECK_MESSAGE(!refused.ok(), word);
    if (!refused.ok()) CHECK(refused.error().message().find("write NAME=DIR") != std::string::npos);
  }
  CHECK(check_adapters({{"a", "x"}, {"b", "x"}}, "--adapter").ok());
  CHECK(!check_adapters({{"a=b", "x"}}, "--adapter").ok());  // a name that no word could give
  CHECK(parse_adapters({"a=x", "a=y"}, "--adapter").error().message().find("that of x already") !=
        std::string::npos);
}

TEST_CASE("the hash of an adapter is of its parameters and scale alone, whatever they are held in") {
  const std::vector<std::string> paths = {"model/w/weight", "model/w/lora/q/b", "model/w/lora/q/a"};
  const ir::Shape shape{ir::DType::f32, {{"embed", 2}, {"rank", 1}}};
  const std::vector<float> some = {1, 2}, other = {1, 3};
  const auto of = [&](const std::vector<float>& v) { return runtime::Buffer::copy_of(shape, v.data()); };
  const std::string hash = adapter_hash(paths, std::vector{of(some), of(other), of(some)}, 2);
  CHECK(hash == adapter_hash(paths, std::vector{of(other), of(other), of(some)}, 2));  // another base
  CHECK(hash != adapter_hash(paths, std::vector{of(some), of(some), of(some)}, 2));
  CHECK(hash != adapter_hash(paths, std::vector{of(some), of(other), of(some)}, 1));
  CHECK(hash == adapter_hash({paths[2], paths[1]}, std::vector{of(some), of(other)}, 2));  // in any order
  runtime::Buffer narrow = runtime::Buffer::empty(shape.with_dtype(ir::DType::bf16));
  numerics::narrow(some, narrow.mutable_bytes());
  CHECK(hash == adapter_hash(paths, std::vector{of(some), of(other), narrow}, 2));
}

}  // namespace
}  // namespace ostro::serve
