// SPDX-License-Identifier: Apache-2.0
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cli/page.hpp"

namespace gpuhealth::cli {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::size_t number_or(std::string_view text, std::size_t otherwise) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0 ? value : otherwise;
}

}  // namespace

Terminal detect_terminal(int fd, ColourChoice choice) {
  Terminal t;
  t.interactive = isatty(fd) == 1;
  t.utf8 = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  const bool plain = !environment("NO_COLOR").empty() || environment("TERM") == "dumb";
  t.colour = choice == ColourChoice::Always || (choice == ColourChoice::Auto && t.interactive && !plain);
  if (!t.interactive) return t;
  winsize size{};
  const bool known = ioctl(fd, TIOCGWINSZ, &size) == 0;
  t.columns = known && size.ws_col > 0 ? size.ws_col : number_or(environment("COLUMNS"), 80);
  t.rows = known && size.ws_row > 0 ? size.ws_row : number_or(environment("LINES"), 24);
  t.columns = std::max<std::size_t>(t.columns, 20);
  return t;
}

}  // namespace gpuhealth::cli
