# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(parse USES telemetry SOURCES parse_fuzz.cpp)
