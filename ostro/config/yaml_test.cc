#include "ostro/config/yaml.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ostro/config/utf8.h"

namespace ostro::config {
namespace {

// A folder of files that goes away with the test.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("ostro_yaml_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_ / "sub");
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

TEST_CASE("an include stands for the file's tree, relative to the file that says it") {
  const Folder folder;
  const std::string top = folder.write("top.yaml", "model: !include sub/model.yaml\nseed: 1\n");
  folder.write("sub/model.yaml", "rope: !include rope.yaml\n");
  const std::string rope = folder.write("sub/rope.yaml", "# comment\ntheta: 7\n");
  const Result<Node> tree = read_yaml_file(top);
  REQUIRE(tree.ok());
  CHECK(flow_text(*tree) == "{model: {rope: {theta: 7}}, seed: 1}");
  CHECK(tree->find("model")->find("rope")->find("theta")->where == rope + ":2");
}

TEST_CASE("an include of a single word keeps the place of the word") {
  Folder folder;
  const std::string top = folder.write("top.yaml", "seed: !include seed.yaml\nwords: [!include seed.yaml]\n");
  const std::string word = folder.write("seed.yaml", "# the seed\n7\n");
  const auto tree = read_yaml_file(top);
  REQUIRE(tree.ok());
  CHECK(tree->find("seed")->text == "7");
  CHECK(tree->find("seed")->where == word + ":2");
  CHECK(tree->find("words")->items[0].where == word + ":2");
}

TEST_CASE("includes that are missing or circular are errors with both places") {
  const Folder folder;
  const std::string missing = folder.write("missing.yaml", "a: 1\nb: !include nowhere.yaml\n");
  CHECK(read_yaml_file(missing).error().message().find(missing + ":2: !include") == 0);
  const std::string circle = folder.write("circle.yaml", "b: !include circle.yaml\n");
  CHECK(read_yaml_file(circle).error().message().find("includes itself") != std::string::npos);
  CHECK(read_yaml_file("/nonexistent/c.yaml").error().code() == ErrorCode::kNotFound);
  CHECK(!read_yaml_file("/tmp").ok());
}

TEST_CASE("what a file of strangers includes is read as its reader allows") {
  std::vector<std::string> asked;
  const ReadText read = [&](const std::string& path) -> Result<std::string> {
    asked.push_back(path);
    if (path == "p/plan.yaml") return std::string("a: !include b.yaml\nc: !include /dev/zero\n");
    if (path == "p/b.yaml") return std::string("inner\n");
    return corrupt(path + ": not listed");
  };
  const auto tree = read_yaml_file("p/plan.yaml", read);
  CHECK(tree.error().message().find("p/plan.yaml:2: !include: /dev/zero: not listed") != std::string::npos);
  CHECK(asked == std::vector<std::string>{"p/plan.yaml", "p/b.yaml", "/dev/zero"});
}

TEST_CASE("hostile text gives an error or a tree, never a crash") {
  for (const char* text :
       {"{", "[", "a: b: c", "\"", "&a [*a]", "*x", "? [1]\n: 2", "a: !!python/object x", "%", "\t",
        "a:\n - b\n c", "!include", "!include [a]", "{a: 1, a: 2}", "--- ---", "<<: {a: 1}"})
    (void)parse_yaml(text, "x").ok();
  (void)parse_yaml(std::string(100000, '['), "x").ok();
  (void)parse_yaml(std::string("a\0b", 3), "x").ok();
  // Nine levels of nine aliases would be 3.9e8 nodes.
  std::string bomb = "a0: &a0 [1]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 9; ++k) bomb += (k ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  CHECK(parse_yaml(bomb, "x").error().message().find("too large") != std::string::npos);
}

TEST_CASE("text that is no YAML is explained: tabs, indentation, brackets, colons") {
  const auto error = [](const std::string& text) {
    const auto tree = parse_yaml(text, "c.yaml");
    return tree.ok() ? "" : tree.error().message();
  };
  CHECK(error("a:\n\tb: 1\n") ==
        "c.yaml:2: this line is indented with a tab; YAML takes spaces, two for each level");
  CHECK(error("a:\n  b: 1\n   c: 2\nd: 3\n") ==
        "c.yaml:3: this line is indented by 3 spaces, and line 2 before it by 2; lines of one section begin "
        "in the "
        "same column");
  CHECK(error("a:\n    b: 1\n  c: 2\n").find("c.yaml:3: this line is indented by 2 spaces, and line 2") == 0);
  CHECK(error("a: [1, 2\nb: 3\n") == "c.yaml:1: a [ is opened in this line and not closed");
  CHECK(error("a: {b: 1\n") == "c.yaml:1: a { is opened in this line and not closed");
  CHECK(error("a: b: c\n").find("c.yaml:1: ") == 0);
}

TEST_CASE("UTF-8") {
  CHECK(is_utf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
  CHECK(as_utf8("a\xc3\xa4") == "a\xc3\xa4");
  CHECK(as_utf8("a\xc3\xa4\xff") == "a\\xc3\\xa4\\xff");
  for (const char* bad : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xe2\x82", "\x80"})
    CHECK(!is_utf8(bad));
}

}  // namespace
}  // namespace ostro::config
