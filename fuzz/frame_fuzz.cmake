# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(frame USES telemetry SOURCES frame_fuzz.cpp)
