// SPDX-License-Identifier: Apache-2.0
// One run of gpuhealth-act for the kernel's side: its answer is collected, and nothing is waited for.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace boost::asio {
class io_context;
}

namespace gpuhealth::daemon {

// What it said on its output, at most 1 MiB; code -1: it could not be started, or was killed at its deadline.
using ActEnded = std::function<void(int code, std::string said)>;
void run_act(boost::asio::io_context& io, std::vector<std::string> words, double limit_s, ActEnded ended);

// gpuhealth-act as a unit of its own: what changes /boot may not be bound by the daemon's sandbox, and does not end
// with it. The words of a command that ends with the unit and gives its output and exit code.
std::vector<std::string> act_unit(const std::string& program, const std::vector<std::string>& words, double limit_s);

}  // namespace gpuhealth::daemon
