// Console: output of a run, which is normal lines, and on a terminal one status line below them that is
// redrawn in place.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace ostro::run {

// The width of a terminal, asked anew at each drawing, because a window can be resized; 0: there is no
// terminal.
using Columns = std::function<int()>;

// The fields of `line`, which are separated by two spaces, as far as they fit into `columns`: fields are
// dropped whole, the last ones first. Only the first field can be cut.
std::string fitted(std::string_view line, int columns);

// Thread-safe. `write` gets raw text for the terminal or file. It is called by one thread at a time.
class Console {
 public:
  using Write = std::function<void(std::string_view)>;

  // `columns` is called at the beginning, and later only if there is a terminal.
  Console(Write write, Columns columns);
  ~Console();  // the last status line stays on the screen
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool is_terminal() const { return is_terminal_; }
  // Prints a normal line above the status line. Control characters except tabs become spaces.
  void line(std::string_view text);
  // Redraws the status line as far as its fields fit; an empty text removes it. Does nothing without a
  // terminal.
  void status(std::string_view text);

 private:
  std::string erased() const;  // requires mutex_

  const Write write_;
  const Columns columns_;
  const bool is_terminal_;
  std::mutex mutex_;
  std::string status_;
};

// Arguments for a console on standard error. stderr_columns() is 0 if that is not a terminal, or if TERM is
// "dumb" (a terminal that cannot redraw a line).
Console::Write stderr_writer();
int stderr_columns();

// Erases a line of `length` characters, which the cursor is at the end of, on a terminal that is now
// `columns` wide. A terminal that was made narrower shows the line in several rows.
std::string erase_line(size_t length, int columns);

}  // namespace ostro::run
