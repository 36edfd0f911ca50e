// TypedDigitReader: reads a Typst document as Typst does, as far as it takes to tell text from code, and
// lists the numbers that its author typed (typed_digits.h). Private to the room. Text is read in
// typed_digits.cc, code in typed_code.cc; each function begins at `at_` and leaves it behind what it read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ostro/paper/typed_digits.h"
#include "ostro/paper/typst_cursor.h"

namespace ostro::paper {

class TypedDigitReader : private TypstCursor {
 public:
  using TypstCursor::TypstCursor;

  std::vector<TypedNumber> read();

 private:
  // Text, up to the bracket that closes it.
  void markup();
  // Passes over the number in front of a heading ("= 2.1 Data", where a point tells it from "= 12 runs", and
  // a large letter from "= 2.5 times") or a list item ("3. "), at the beginning of a line.
  void line_begin();
  void formula();
  // Behind "#": code within text.
  void embedded();
  void number(bool in_code = false);
  // The numbers of a text in quotes, which begins here.
  void numbers_of_string(bool in_code);
  // The number between two places.
  void add(size_t begin, size_t end, bool in_code);

  void expression();
  // What follows a name or a group: fields, arguments, content.
  void calls(std::string function);
  // "(...)", "{...}" or "[...]", as arguments of a function where it has a name; false: none begins here.
  bool group(const std::string& function);
  // Code, up to what closes it; of a statement to the end of its line, or a semicolon. `function`: of whose
  // arguments it is. Numbers and texts in it may be shown by whatever the code does.
  void code(bool ends_at_line, const std::string& function);
  // What stands between "if" and its block.
  void condition();
  // "if a {...} else if b [...] else [...]", and loops. What a loop runs over may be shown.
  void blocks(bool is_loop);
  // A number of code; one with a unit is a length, a share or an angle.
  void literal(bool is_listed);

  // Reads without listing the numbers of code. Text that is shown is listed.
  template <typename Read>
  void quietly(const Read& read) {
    const bool before = is_quiet_;
    is_quiet_ = true;
    read();
    is_quiet_ = before;
  }

  bool is_quiet_ = false;  // numbers of code are not listed
  std::vector<TypedNumber> found_;
};

}  // namespace ostro::paper
