# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(kfd_events USES telemetry SOURCES kfd_events_fuzz.cpp)
