// Console output of a run: normal lines, and on a terminal one status line below them that is redrawn in
// place.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace ostro::run {

// Thread-safe. `write` gets raw text for the terminal or file. It is called by one thread at a time.
class Console {
 public:
  using Write = std::function<void(std::string_view)>;

  // `columns` is the width of the terminal. 0 means that there is no terminal; then status() shows nothing.
  Console(Write write, int columns);
  ~Console();  // the last status line stays on the screen
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool is_terminal() const { return columns_ > 0; }
  // Prints a normal line above the status line. Control characters except tabs become spaces.
  void line(std::string_view text);
  // Redraws the status line, cut to the terminal's width; an empty text removes it.
  void status(std::string_view text);

 private:
  const Write write_;
  const int columns_;
  std::mutex mutex_;
  std::string status_;
};

// Arguments for a console on standard error. stderr_columns() is 0 if that is not a terminal, or if TERM is
// "dumb" (a terminal that cannot redraw a line).
Console::Write stderr_writer();
int stderr_columns();

}  // namespace ostro::run
