// SPDX-License-Identifier: Apache-2.0
// gpuhealthctl: what a person or a script asks of gpuhealthd.
#include "cli/command.hpp"

#include <clocale>
#include <ctime>

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");
  tzset();
  return gpuhealth::cli::run(argc, argv);
}
