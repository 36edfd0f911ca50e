#include "ostro/chat/run/template.h"

#include <doctest/doctest.h>

#include <random>

#include "ostro/chat/value/from_json.h"

namespace ostro::chat::jinja {
namespace {

Result<Rendered> render(std::string_view source, std::string_view context = "{}",
                        const RenderOptions& options = {}) {
  ASSIGN_OR_RETURN(const Template parsed, Template::parse(source, "t.jinja"));
  ASSIGN_OR_RETURN(const Value values, from_json(context));
  return parsed.render(values.as_mapping(), options);
}

std::string text(std::string_view source, std::string_view context = "{}") {
  const auto out = render(source, context);
  return out.ok() ? out.value().text : "error: " + out.error().message();
}

std::string error(std::string_view source, std::string_view context = "{}",
                  const RenderOptions& options = {}) {
  const auto out = render(source, context, options);
  REQUIRE_FALSE(out.ok());
  return out.error().message();
}

}  // namespace

// What jinja2 renders is compared by tests/interop/check_chat.py; here is what must hold without Python.

TEST_CASE("jinja: expressions, loops, macros") {
  CHECK(text("{{ 1 + 2 * 3 }} {{ 'a' ~ 1 }} {{ [1, 'b', none, 2.0] }}") == "7 a1 [1, 'b', None, 2.0]");
  CHECK(
      text("{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
           R"({"l": [1, 2, 3]})") == "1:2, 2:3");
  CHECK(text("{% macro m(x, y='!') %}{{ x }}{{ y }}{% endmacro %}{{ m('a') }}{{ m('b', y='?') }}") == "a!b?");
  CHECK(text("{{ messages[-1].content | trim | upper }}", R"({"messages": [{"content": " h\u00e9 "}]})") ==
        "H\u00c9");
  CHECK(text("{{ d | tojson }}", R"({"d": {"b": 1, "a": [true, null, 1.5, "\u00e9\n"]}})") ==
        "{\"b\": 1, \"a\": [true, null, 1.5, \"\u00e9\\n\"]}");
}

TEST_CASE("jinja: white space is trimmed as with trim_blocks and lstrip_blocks") {
  CHECK(text("a\n  {% if true %}\n  b\n  {% endif %}\nc\n") == "a\n  b\nc");
  CHECK(text("a  {{- ' b ' -}}  c") == "a b c");
  CHECK(text("  {%+ if true %}x{% endif +%}\ny") == "  x\ny");
}

TEST_CASE("jinja: generation blocks say where their text stands") {
  const auto out =
      render("u:{{ u }}{% generation %}a:{{ a }}{% endgeneration %}.{% generation %}{% endgeneration %}",
             R"({"u": "\u00e9", "a": "x"})");
  REQUIRE(out.ok());
  CHECK(out.value().text == "u:\u00e9a:x.");
  CHECK(out.value().generations == std::vector<std::pair<size_t, size_t>>{{4, 7}, {8, 8}});
  CHECK(error("{% macro m() %}{% generation %}{% endgeneration %}{% endmacro %}").find("a macro") !=
        std::string::npos);
  CHECK(error("{% set x %}{% generation %}{% endgeneration %}{% endset %}").find("a set block") !=
        std::string::npos);
}

TEST_CASE("jinja: errors name the template, the line and the construct") {
  CHECK(error("a\n{{ x.y }}") == "t.jinja: line 2: 'x' is undefined");
  CHECK(error("{% if x %}\n\n{% for %}") == "t.jinja: line 3: expected a name, found '%}'");
  CHECK(error("{% if x %}") == "t.jinja: line 1: {% if %} without its {% endif %}");
  CHECK(error("\n{{ raise_exception('no tools') }}") == "t.jinja: line 2: the template says: no tools");
  CHECK(error("{{ x | frob }}").find("no filter named 'frob'") != std::string::npos);
  CHECK(error("{{ l.append(1) }}", R"({"l": []})").find("templates may not") != std::string::npos);
  CHECK(error("{{ strftime_now('%Y') }}").find("depend on the day") != std::string::npos);
  CHECK(error("{% include 'x' %}").find("not supported") != std::string::npos);
  CHECK(error("\xff").find("UTF-8") != std::string::npos);
}

TEST_CASE("jinja: the clock is what the caller says") {
  RenderOptions options;
  options.now = 1700000000;
  const auto out = render("{{ strftime_now('%d %b %Y %H:%M') }}", "{}", options);
  REQUIRE(out.ok());
  CHECK(out.value().text == "14 Nov 2023 22:13");
}

TEST_CASE("jinja: hostile templates end") {
  RenderOptions small;
  small.max_steps = 20000;
  small.max_bytes = 1 << 20;
  CHECK(error("{% macro m(n) %}{{ m(n) }}{% endmacro %}{{ m(1) }}").find("deep") != std::string::npos);
  CHECK(error("{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}", "{}", small)
            .find("t.jinja: line 1: ") == 0);
  CHECK(error("{% set ns = namespace(x='aaaaaaaa') %}{% for a in range(100) %}{% set ns.x = ns.x + ns.x %}{% "
              "endfor %}",
              "{}", small)
            .find("bytes") != std::string::npos);
  CHECK(error("{{ 'a' * 1000000000000 }}", "{}", small).find("bytes") != std::string::npos);
  CHECK(error("{{ ('a' * 1000) | replace('', 'b' * 100000) }}", "{}", small).find("bytes") !=
        std::string::npos);
  CHECK(error("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}").find("deep") !=
        std::string::npos);
  std::string sum = "{{ 1";
  for (int i = 0; i < 100000; ++i) sum += " + 1";
  CHECK(error(sum + " }}").find("levels") != std::string::npos);
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += "{% if true %}";
  CHECK(error(nested).find("deep") != std::string::npos);
  CHECK(error("{{ x }}", "{\"x\": " + std::string(5000, '[') + std::string(5000, ']') + "}").find("levels") !=
        std::string::npos);
  // Namespaces and loops that hold themselves are freed (the leak checker sees them otherwise).
  CHECK(text("{% set ns = namespace() %}{% set ns.self = ns %}{% for x in [1] %}{% set ns.l = loop %}{{ "
             "loop.changed(loop) "
             "}}{% endfor %}") == "True");
}

TEST_CASE("jinja: damaged templates give an error or a text, never worse") {
  const std::string whole =
      "{%- for m in messages %}{% if m.role == 'user' and loop.first %}{{ m['content'][1:] | trim | "
      "replace('a', \"b\") }}"
      "{% elif m is defined %}{% set x = [1, 2.5, {'k': none}] %}{{ x | tojson(indent=2) }}{% else %}{# c "
      "#}{% endif -%}\n"
      "{% generation %}{{ '%s' % m.role ~ loop.index0 }}{% endgeneration %}{% endfor %}{% raw %}{{{% endraw "
      "%}";
  const std::string_view context =
      R"({"messages": [{"role": "user", "content": "banana"}, {"role": "x", "content": null}]})";
  std::mt19937 rng(5);
  int good = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = whole;
    for (int edits = static_cast<int>(rng() % 3) + 1; edits > 0; --edits) {
      const size_t at = rng() % damaged.size();
      if (rng() % 3 == 0)
        damaged.erase(at, rng() % 5 + 1);
      else if (rng() % 2 == 0)
        damaged.insert(at, whole.substr(rng() % whole.size(), rng() % 6));
      else
        damaged[at] = "{}%#'\"|()[]-+ \n.x1"[rng() % 18];
    }
    good += render(damaged, context).ok() ? 1 : 0;
  }
  CHECK(good > 20);
  CHECK(good < 2980);
}

TEST_CASE("jinja: JSON keeps the order of keys and refuses what does not fit") {
  const auto value = from_json(R"({"z": 1, "a": 2, "z": 3})");
  REQUIRE(value.ok());
  CHECK(to_repr(value.value()) == "{'z': 3, 'a': 2}");
  CHECK(from_json("{\"a\": 18446744073709551616}").error().message().find("64 bits") != std::string::npos);
  CHECK_FALSE(from_json("{\"a\": 1e999}").ok());
  CHECK(from_json("{\"a\": ").error().message().find("not valid JSON") == 0);
}

}  // namespace ostro::chat::jinja
