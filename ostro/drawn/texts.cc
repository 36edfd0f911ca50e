#include "ostro/drawn/texts.h"

#include <fmt/format.h>

#include "ostro/drawn/language.h"

namespace ostro::drawn {
namespace {

// Sentences about one topic. C++ leaves open which argument of a call is evaluated first, and a draw is
// another one in another place, so every draw of this file has a statement of its own.
class Writer {
 public:
  Writer(Draws& draws, uint32_t topic, double noise) : draws_(&draws), topic_(topic), noise_(noise) {}

  std::string sentence() {
    const uint32_t a = draws_->rather_small(kNouns), b = draws_->rather_small(kNouns),
                   v = draws_->rather_small(kVerbs), kind = draws_->below(5);
    if (kind == 0) {
      const std::string object = thing(b), act = action(v), subject = thing(a), quality = adjective_of(a);
      return fmt::format("The {} {} {}s the {}.", quality, subject, act, object);
    }
    if (kind == 1) {
      const std::string quality = adjective_of(b), object = thing(b), act = action(v), subject = thing(a);
      return fmt::format("When a {} {}s, the {} is {}.", subject, act, object, quality);
    }
    if (kind == 2) {
      const std::string material = thing(made_of(a)), subject = thing(a);
      return fmt::format("Every {} is made of {}.", subject, material);
    }
    if (kind == 3) {
      const std::string place = thing(made_of(b)), object = thing(b), act = action(v), subject = thing(a);
      return fmt::format("{}s {} the {} near the {}.", capital(subject), act, object, place);
    }
    const std::string material = thing(made_of(a)), act = action(v), subject = thing(a),
                      quality = adjective_of(a);
    return fmt::format("It is said that a {} {} cannot {} without {}.", quality, subject, act, material);
  }

  std::string paragraph(uint32_t least, uint32_t most) {
    std::string out;
    const uint32_t sentences = draws_->between(least, most);
    for (uint32_t i = 0; i < sentences; ++i) out += (out.empty() ? "" : " ") + sentence();
    return out;
  }

  std::string title() {
    const uint32_t a = draws_->rather_small(kNouns);
    return fmt::format("On the {} and its {}", noun(topic_, a), noun(topic_, made_of(a)));
  }

 private:
  std::string thing(uint32_t number) { return noisy(noun(topic_, number)); }
  std::string action(uint32_t number) { return noisy(verb(topic_, number)); }
  std::string adjective_of(uint32_t number) { return noisy(adjective(quality_of(topic_, number))); }

  std::string noisy(std::string word) {
    if (!draws_->chance(noise_)) return word;
    const uint32_t letters = draws_->between(2, 8);
    word.clear();
    for (uint32_t i = 0; i < letters; ++i) word += static_cast<char>('a' + draws_->below(26));
    return word;
  }

  Draws* draws_;
  uint32_t topic_;
  double noise_;
};

std::string sum(Draws& draws) {
  const uint32_t a = draws.below(50), b = draws.below(50), kind = draws.below(3);
  if (kind == 0) return fmt::format("{} + {} = {}", a, b, a + b);
  if (kind == 1) return fmt::format("{} - {} = {}", a + b, b, a);
  return fmt::format("{} x {} = {}", a % 10, b % 10, (a % 10) * (b % 10));
}

}  // namespace

Prose draw_prose(Draws& draws, double noise) {
  Writer writer(draws, draws.below(kTopics), noise);
  Prose out{writer.title(), {}};
  const uint32_t paragraphs = draws.between(2, 4);
  for (uint32_t i = 0; i < paragraphs; ++i) out.paragraphs.push_back(writer.paragraph(3, 6));
  return out;
}

Prose draw_paper(Draws& draws, double noise) {
  Writer writer(draws, draws.below(kTopics), noise);
  Prose out{writer.title(), {}};
  out.paragraphs.push_back("Abstract. " + writer.paragraph(2, 3));
  out.paragraphs.push_back("1 Introduction");
  out.paragraphs.push_back(writer.paragraph(3, 6));
  out.paragraphs.push_back("2 Results");
  const std::string follows = sum(draws), results = writer.paragraph(3, 6);
  out.paragraphs.push_back(results + " Therefore " + follows + ".");
  std::string references = "References";
  const uint32_t count = draws.between(2, 4);
  for (uint32_t i = 1; i <= count; ++i) {
    const uint32_t year = 1950 + draws.below(70);
    const std::string title = writer.title(), author = name(draws.rather_small(40));
    references += fmt::format("\n[{}] {}. {}. {}.", i, author, title, year);
  }
  out.paragraphs.push_back(std::move(references));
  return out;
}

std::string draw_code(Draws& draws) {
  constexpr const char* kOperators[] = {"+", "-", "*"};
  const uint32_t topic = draws.below(kTopics), functions = draws.between(2, 4);
  std::string out, last;
  for (uint32_t i = 0; i < functions; ++i) {
    const std::string a = noun(topic, draws.rather_small(kNouns)),
                      b = noun(topic, draws.rather_small(kNouns)) + "_2",
                      function = verb(topic, draws.rather_small(kVerbs)) + "_" + a;
    const uint32_t limit = draws.below(100);
    const char* in_total = kOperators[draws.below(3)];
    out += fmt::format("def {}({}, {}):\n    total = {} {} {}\n    if total > {}:\n        return {}\n",
                       function, a, b, a, in_total, b, limit,
                       last.empty() ? "total" : fmt::format("{}(total, {})", last, a));
    const uint32_t by = draws.between(1, 9);
    const char* at_end = kOperators[draws.below(3)];
    out += fmt::format("    return total {} {}\n\n", at_end, by);
    last = function;
  }
  return out;
}

std::string draw_maths(Draws& draws) {
  std::string out;
  const uint32_t lines = draws.between(6, 14);
  for (uint32_t i = 0; i < lines; ++i) {
    const uint32_t a = draws.below(30), b = draws.below(30);
    out += draws.below(4) == 0 ? fmt::format("If x = {} and y = {}, then x + y = {}.\n", a, b, a + b)
                               : sum(draws) + "\n";
  }
  return out;
}

std::string draw_tasks(Draws& draws) {
  std::string out;
  const uint32_t questions = draws.between(2, 4);
  for (uint32_t i = 0; i < questions; ++i) {
    const uint32_t topic = draws.below(kTopics), a = draws.rather_small(kNouns), kind = draws.below(3),
                   x = draws.below(50), y = draws.below(50);
    if (!out.empty()) out += "\n";
    if (kind == 0)
      out += fmt::format("Question: What is every {} made of?\nAnswer: {}\n", noun(topic, a),
                         noun(topic, made_of(a)));
    else if (kind == 1)
      out += fmt::format("Question: How is the {}?\nAnswer: {}\n", noun(topic, a),
                         adjective(quality_of(topic, a)));
    else
      out += fmt::format("Question: How much is {} + {}?\nAnswer: {}\n", x, y, x + y);
  }
  return out;
}

std::string draw_sentence(Draws& draws) { return Writer(draws, draws.below(kTopics), 0).sentence(); }

std::string plain_text(const Prose& prose) {
  std::string out = prose.title + "\n";
  for (const std::string& paragraph : prose.paragraphs) out += "\n" + paragraph + "\n";
  return out;
}

std::string page(const Prose& prose, Draws& draws) {
  std::string navigation;
  const uint32_t links = draws.between(4, 8);
  for (uint32_t i = 0; i < links; ++i) {
    const uint32_t number = draws.below(kNouns), topic = draws.below(kTopics);
    const std::string to = noun(topic, number);
    navigation += fmt::format("<li><a href=\"/{}\">{}</a></li>", to, capital(to));
  }
  std::string body;
  for (const std::string& paragraph : prose.paragraphs) {
    body += "<p>";
    for (const char c : paragraph) {
      if (c == '&')
        body += "&amp;";
      else if (c == '<')
        body += "&lt;";
      else
        body += c;
    }
    body += "</p>\n";
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title></head>\n<body>\n"
      "<header><nav><ul>{1}</ul></nav></header>\n<main><article>\n<h1>{0}</h1>\n{2}</article></main>\n"
      "<footer><p>Copyright {3}. <a href=\"/privacy\">Privacy</a> <a "
      "href=\"/contact\">Contact</a></p></footer>\n"
      "</body></html>\n",
      prose.title, navigation, body, name(draws.below(40)));
}

}  // namespace ostro::drawn
