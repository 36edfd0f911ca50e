#include "ostro/io/hub/hub_names.h"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ostro::io {
namespace {

namespace stdfs = std::filesystem;

TEST_CASE(
    "names of the hub are folders of its cache, by branch and by commit; others say what fetches them") {
  const stdfs::path root = stdfs::temp_directory_path() / fmt::format("ostro_hub_test_{}", getpid());
  const auto put = [&](const std::string& path, const std::string& text) {
    stdfs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  setenv("HF_HUB_CACHE", root.c_str(), 1);
  setenv("HF_HUB_OFFLINE", "1", 1);
  put("models--org--m/refs/main", "abc\n");
  put("models--org--m/snapshots/abc/tokenizer.json", "{}");
  put("models--org--m/snapshots/def/tokenizer.json", "{}");
  put("models--gpt2/refs/main", "x");
  put("models--gpt2/snapshots/x/model.safetensors", "");
  put("models--gpt2/snapshots/x/config.json", "{}");
  const auto find = [](const std::string& path, HubFiles wanted) {
    const auto found = local_or_hub(path, wanted, "data.tokenizer");
    return found.ok() ? *found : found.error().message();
  };
  const std::string m = (root / "models--org--m/snapshots").string();
  CHECK(find("org/m", HubFiles::kTokenizer) == m + "/abc");
  CHECK(find("org/m@def", HubFiles::kTokenizer) == m + "/def");
  CHECK(find("gpt2", HubFiles::kModel) == (root / "models--gpt2/snapshots/x").string());
  // A snapshot that lacks the weights is none of a model.
  CHECK(find("org/m", HubFiles::kModel).find("fetch it with: hf download org/m") != std::string::npos);
  CHECK(find("org/m@v2", HubFiles::kTokenizer).find("hf download org/m --revision v2") != std::string::npos);
  CHECK(find(root.string(), HubFiles::kModel) == root.string());
  CHECK(find("s3://b/k", HubFiles::kModel) == "s3://b/k");
  CHECK(
      find("a/b/tokenizer.json", HubFiles::kTokenizer)
          .find(
              "data.tokenizer: a/b/tokenizer.json does not exist; paths are relative to the folder that you "
              "are in (/") == 0);
  for (const char* name : {"a/b", "gpt2", "meta-llama/Llama-3.1-8B", "x/y@main"}) CHECK(is_hub_name(name));
  for (const char* path : {"", "/a/b", "a/b/c", "./a", "a/", "t.json", "a b", "../m", "m@", "m@../x"})
    CHECK_MESSAGE(!is_hub_name(path), path);
  stdfs::remove_all(root);
  unsetenv("HF_HUB_CACHE");
  unsetenv("HF_HUB_OFFLINE");
}

}  // namespace
}  // namespace ostro::io
