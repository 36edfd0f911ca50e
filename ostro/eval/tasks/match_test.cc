#include "ostro/eval/tasks/match.h"

#include <doctest/doctest.h>

namespace ostro::eval {
namespace {

Matcher matcher(GenerateOptions options) { return Matcher::create("tasks.t", options).value(); }

TEST_CASE("the last number of a text, in one way of writing") {
  const auto number = [](const char* text) { return last_number(text).value_or("none"); };
  CHECK(number("It costs $1,234.50.") == "1234.5");
  CHECK(number("from 5 to -07") == "-7");
  CHECK(number("5-3") == "3");
  CHECK(number("x-3") == "3");
  CHECK(number("= -0.0") == "0");
  CHECK(number(".50") == "0.5");
  CHECK(number("1, 2") == "2");
  CHECK(number("1,23") == "23");
  CHECK(number("v1.2.3") == "2.3");
  CHECK(number("12,345,678 and more") == "12345678");
  CHECK(number("so it is \u22127.") == "-7");
  CHECK(number("5\u22123") == "3");
  CHECK(number("no number") == "none");
  CHECK(number("") == "none");
}

TEST_CASE("exact match, and what it does not look at") {
  CHECK(*matcher({}).exact(" yes\n", {"no", "yes"}));
  CHECK_FALSE(*matcher({}).exact("Yes.", {"yes"}));
  GenerateOptions loose;
  loose.ignore_case = loose.ignore_punctuation = true;
  CHECK(*matcher(loose).exact("Yes.", {"yes"}));
  loose.regexes_to_ignore = {"\\bthe\\b"};
  CHECK(*matcher(loose).exact("the end", {"End"}));
  CHECK(matcher({}).numeric("so it is 7.0", {"#### 7"}));
  CHECK_FALSE(matcher({}).numeric("so it is", {"7"}));
}

TEST_CASE("a regular expression takes out the answer") {
  GenerateOptions options;
  options.regex.pattern = "answer is (\\d+)|#### (\\w+)";
  CHECK(*matcher(options).extract("the answer is 12, #### x") == "12");
  options.regex.group = -1;
  CHECK(*matcher(options).extract("the answer is 12, #### x") == "x");
  CHECK(*matcher(options).extract("nothing") == "[invalid]");
  options.regex.group = 2;
  CHECK(*matcher(options).extract("the answer is 12, #### x") == "[invalid]");
  CHECK(*matcher({}).extract(" as it is ") == "as it is");
}

TEST_CASE("a regular expression that cannot be used is an error with its key") {
  GenerateOptions options;
  options.regex.pattern = "(";
  CHECK(Matcher::create("tasks.t", options)
            .error()
            .message()
            .starts_with("tasks.t.regex.pattern: \"(\" is not"));
  options.regex.pattern = "";
  options.regexes_to_ignore = {"a", "[z"};
  CHECK(Matcher::create("tasks.t", options).error().message().starts_with("tasks.t.regexes_to_ignore[1]"));
}

// What Python's re finds in the same text.
TEST_CASE("patterns see characters, as Python's re does") {
  const auto answer = [](const char* pattern, const char* text) {
    GenerateOptions options;
    options.regex.pattern = pattern;
    return *matcher(options).extract(text);
  };
  CHECK(answer("答案是([甲乙丙丁])", " 答案是乙。") == "乙");
  CHECK(answer("答案是(.)", " 答案是乙。") == "乙");
  CHECK(answer("([^乐]{1})是", " 答案是乙。") == "案");
  CHECK(answer("(\\w+):", " Réponse: ÉTÉ") == "Réponse");
  CHECK(answer("\\u7b54\\u6848(.{,2})", "答案是乙。") == "是乙");
  CHECK(answer("(\\d+)", "x٣٤") == "٣٤");
  CHECK(answer("(?i)été", "ÉTÉ") == "ÉTÉ");
  CHECK(answer("(a)\\1", "aab") == "a");
  CHECK(answer("(?P<n>b)|(c)?x\\Z", "x") == "[invalid]");
  CHECK(answer("^.$", "乙\n") == "乙");
  GenerateOptions loose;
  loose.ignore_case = true;
  CHECK(*matcher(loose).exact("Réponse: ÉTÉ", {"réponse: été"}));
  loose.regexes_to_ignore = {"[。！]", "x*"};
  CHECK(*matcher(loose).exact("乙x。", {"乙"}));
}

TEST_CASE("a long text, and patterns that would backtrack for ever") {
  GenerateOptions options;
  options.regex.pattern = "(a+)+b";
  CHECK(*matcher(options).extract(std::string(20000, 'a')) == "[invalid]");
  options.regex.pattern = "(a|aa)+$";
  CHECK(matcher(options).extract(std::string(60, 'a') + "c").error().message().find("backtracks less") !=
        std::string::npos);
}

}  // namespace
}  // namespace ostro::eval
