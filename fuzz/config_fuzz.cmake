# SPDX-License-Identifier: Apache-2.0
# config.cpp itself rather than its room: the rest of the daemon is no part of it, and takes minutes to build.
gpuhealth_fuzz(config USES health SOURCES config_fuzz.cpp ${CMAKE_SOURCE_DIR}/daemon/config.cpp)
target_link_libraries(fuzz_config PRIVATE yaml-cpp)
