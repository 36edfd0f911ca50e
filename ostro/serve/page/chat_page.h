// chat_page: the page at "/", on which a person talks with the model in a browser. One file without outside
// resources, under a policy that lets only its own script and style in.
#pragma once

#include "ostro/http/message.h"

namespace ostro::serve {

http::Response chat_page();

}  // namespace ostro::serve
