// lab_screen: the picture that `ostro watch` draws of a lab in a terminal: its steps with their states, and
// how trainings go.
#pragma once

#include <map>
#include <string>

#include "ostro/lab/drive/live_lab.h"
#include "ostro/page/numbers/history.h"
#include "ostro/page/terminal/canvas.h"

namespace ostro::cli {

// By step: the numbers of trainings that are at work.
using LiveHistories = std::map<std::string, page::History>;

// Lines that fit the terminal's width, at most `rows` of them. Where there are too many steps those that are
// done are left out, and then the last ones.
std::string lab_screen(const lab::Plan& plan, const lab::LiveLab& lab, const LiveHistories& histories,
                       const page::Terminal& terminal, int rows);

// The same in one line, for a log.
std::string lab_line(const lab::Plan& plan, const lab::LiveLab& lab, const LiveHistories& histories);

// A number that is another one when something went on.
int64_t lab_progress(const lab::LiveLab& lab);

}  // namespace ostro::cli
