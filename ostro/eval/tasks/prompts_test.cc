#include "ostro/eval/tasks/prompts.h"

#include <doctest/doctest.h>

#include <set>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"

namespace ostro::eval {
namespace {

class Rows {
 public:
  explicit Rows(const std::string& rows) { check_ok(io::write_file_atomically(fs_, "d.jsonl", rows)); }
  Result<Questions> make(TaskOptions options) {
    std::visit([](auto& t) { t.files = {"d.jsonl"}; }, options);
    return make_questions(fs_, "t", options);
  }
  std::string error(TaskOptions options) {
    const auto made = make(std::move(options));
    return made.ok() ? "" : made.error().message();
  }

 private:
  io::MemoryFileSystem fs_;
};

MultipleChoiceOptions choice(const std::string& text, const std::string& choices, const std::string& target) {
  MultipleChoiceOptions out;
  out.doc_to_text = text, out.doc_to_choice.value = choices, out.doc_to_target.value = target;
  return out;
}

constexpr const char* kRows =
    "{\"q\": \"one\", \"c\": [\"a\", \"b\"], \"l\": \"b\", \"n\": {\"text\": [\"x\", \"y\", \"z\"], \"i\": "
    "2}}\n"
    "\n"
    "{\"q\": \"two\", \"c\": [\"c\", \"2\"], \"l\": 0, \"n\": {\"text\": [\"p\", \"q\"], \"i\": 0}}\n";

TEST_CASE("fields, templates and expressions") {
  Rows rows(kRows);
  const auto plain = rows.make(choice("q", "c", "l")).value().questions;
  REQUIRE(plain.size() == 2);
  CHECK(plain[0].prompt == "one");
  CHECK(plain[0].choices == std::vector<std::string>{"a", "b"});
  CHECK(plain[0].gold == 1);
  CHECK(plain[1].gold == 0);
  CHECK(plain[1].place == "d.jsonl:3");
  const auto nested = rows.make(choice("Q: {{q}}\nA:", "{{ n.text }}", "{{n.i}}")).value().questions;
  CHECK(nested[0].prompt == "Q: one\nA:");
  CHECK(nested[0].choices.size() == 3);
  CHECK(nested[0].gold == 2);
  MultipleChoiceOptions listed = choice("{{q}}\n", "", "{{ 1 }}");
  listed.doc_to_choice.value = std::vector<std::string>{"yes", "{{q}} no"};
  const auto third = rows.make(listed).value().questions;
  CHECK(third[1].prompt == "two\n");  // the line end stays
  CHECK(third[1].choices == std::vector<std::string>{"yes", "two no"});
}

TEST_CASE("examples are drawn by the seed, never the document itself") {
  std::string rows;
  for (int i = 0; i < 9; ++i)
    rows += "{\"q\": \"q" + std::to_string(i) + "\", \"a\": \"a" + std::to_string(i) + "\"}\n";
  Rows file(rows);
  LoglikelihoodOptions options;
  options.description = "D ", options.doc_to_text = "q", options.doc_to_target = "a";
  options.num_fewshot = 2, options.fewshot_delimiter = "|", options.limit = 4;
  const auto first = file.make(options).value().questions, again = file.make(options).value().questions;
  options.fewshot_seed = 2;
  const auto other = file.make(options).value().questions;
  REQUIRE(first.size() == 4);
  int differ = 0;
  std::set<std::string> prompts;
  for (size_t i = 0; i < first.size(); ++i) {
    const std::string own = "q" + std::to_string(i);
    CHECK(first[i].prompt == again[i].prompt);
    differ += first[i].prompt != other[i].prompt;
    CHECK(first[i].prompt.starts_with("D q"));
    CHECK(first[i].prompt.ends_with("|" + own));
    CHECK(first[i].prompt.find(own + " a") == std::string::npos);
    CHECK(first[i].prompt.size() == std::string("D q1 a1|q2 a2|q3").size());
    prompts.insert(first[i].prompt);
  }
  CHECK(differ > 0);
  CHECK(prompts.size() == 4);
  options.num_fewshot = 9;
  CHECK(file.error(options) ==
        "tasks.t.num_fewshot: 9, but there are only 8 documents to take examples from");
}

TEST_CASE("what is wrong is named with its key and its document") {
  Rows rows(kRows);
  CHECK(rows.error(choice("qq", "c", "l")) ==
        "tasks.t.doc_to_text: d.jsonl:1 has no field \"qq\"; the nearest is \"q\" (a template has {{field}} "
        "in it)");
  CHECK(rows.error(choice("{{qq}}", "c", "l")).find("d.jsonl:1") != std::string::npos);
  CHECK(rows.error(choice("{{qq}}", "c", "l")).find("'qq' is undefined") != std::string::npos);
  CHECK(rows.error(choice("{{q", "c", "l")).starts_with("tasks.t.doc_to_text: line 1"));
  CHECK(rows.error(choice("q", "q", "l")) ==
        "tasks.t.doc_to_choice: d.jsonl:1: is a str, not a list of texts");
  CHECK(rows.error(choice("q", "{{ [q] }}", "l")) ==
        "tasks.t.doc_to_choice: d.jsonl:1: 1 choices; at least 2 are needed");
  CHECK(rows.error(choice("q", "{{ [q, ''] }}", "l")) ==
        "tasks.t.doc_to_choice: d.jsonl:1: choice 1 is empty");
  CHECK(rows.error(choice("q", "c", "q")) ==
        "tasks.t.doc_to_target: d.jsonl:1: \"one\" is none of the choices (\"a\", \"b\")");
  CHECK(rows.error(choice("q", "c", "{{n.i + 5}}")) ==
        "tasks.t.doc_to_target: d.jsonl:1: 7 is not the number of a choice; there are 2, from 0");
  Rows empty("\n");
  CHECK(empty.error(choice("q", "c", "l")) == "tasks.t.files: there is no document in d.jsonl");
  Rows broken("{\"q\": \n");
  CHECK(broken.error(choice("q", "c", "l")).starts_with("d.jsonl:1: "));
}

}  // namespace
}  // namespace ostro::eval
