# SPDX-License-Identifier: Apache-2.0
# What needs no machine: bytes and ids to meaning.
gpuhealth_room(telemetry_decoders USES core SOURCES gpu_metrics.cpp gpu_metrics_frame.cpp gpu_metrics_table.cpp
  gpu_metrics_view.cpp)
