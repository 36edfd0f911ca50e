// draw_prose, draw_code, draw_maths, draw_tasks: one text of a kind. What is learnable in them: words belong
// to topics, sentences have a grammar, what a thing is made of and how it is are the same in all texts, sums
// are right, and names in code are used as they were declared.
#pragma once

#include <string>
#include <vector>

#include "ostro/drawn/draws.h"

namespace ostro::drawn {

// A title and paragraphs.
struct Prose {
  std::string title;
  std::vector<std::string> paragraphs;
};

// About one topic. A `noise` share of the words, from 0 to 1, are letters without sense.
Prose draw_prose(Draws& draws, double noise);
// A title, an abstract, sections with a formula, and references.
Prose draw_paper(Draws& draws, double noise);
// Functions of a small language, like Python.
std::string draw_code(Draws& draws);
// Sums and products, a line each, and short conclusions.
std::string draw_maths(Draws& draws);
// Questions about what the other kinds say, each with its answer.
std::string draw_tasks(Draws& draws);

// A sentence about some topic, which a near duplicate has more than its original.
std::string draw_sentence(Draws& draws);

// Title and paragraphs with empty lines between them.
std::string plain_text(const Prose& prose);
// The same as an HTML page with navigation and a footer around it, which are drawn, too.
std::string page(const Prose& prose, Draws& draws);

}  // namespace ostro::drawn
