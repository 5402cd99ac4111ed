# SPDX-License-Identifier: Apache-2.0
# What needs no machine: bytes, text and ids to meaning.
gpuhealth_room(telemetry_decoders USES core SOURCES asic.cpp fdinfo.cpp gpu_metrics.cpp gpu_metrics_frame.cpp gpu_metrics_table.cpp
  gpu_metrics_view.cpp metrics_units.cpp parse.cpp quirks.cpp throttle_map.cpp)
