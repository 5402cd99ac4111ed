# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(canary_lines USES health canary_worker SOURCES canary_lines_fuzz.cpp ${CMAKE_SOURCE_DIR}/cli/canary_results.cpp)
