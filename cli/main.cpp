// SPDX-License-Identifier: Apache-2.0
// gpuhealthctl: what a person or a script asks of gpuhealthd.
#include <clocale>
#include <ctime>

#include "cli/command.hpp"

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");
  tzset();
  return gpuhealth::cli::run(argc, argv);
}
