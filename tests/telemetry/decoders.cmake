# SPDX-License-Identifier: Apache-2.0
gpuhealth_test(decoders USES telemetry_decoders LIBS nlohmann_json::nlohmann_json SOURCES asic_test.cpp
  gpu_metrics_capture_test.cpp gpu_metrics_layout_test.cpp gpu_metrics_stream_test.cpp gpu_metrics_test.cpp
  gpu_metrics_view_test.cpp metrics_units_test.cpp quirks_test.cpp throttle_map_test.cpp)
target_include_directories(test_decoders PRIVATE ${CMAKE_SOURCE_DIR})
