// SPDX-License-Identifier: Apache-2.0
// /sys/devices/system: the processors of a synthetic machine, as far as runtimes ask for them (hwloc in pocl).
#pragma once

#include "sim/folder.hpp"

namespace gpuhealth::sim {

// `count` (1 to 32) cores of one thread each in one package with 16 MiB of last cache.
void write_cpus(Folder& sys, unsigned count);

}  // namespace gpuhealth::sim
