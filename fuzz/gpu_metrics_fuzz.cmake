# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(gpu_metrics USES telemetry_decoders SOURCES gpu_metrics_fuzz.cpp)
# Coverage of the library too, so that the fuzzer steers by the decoder's branches.
target_compile_options(gh_telemetry_decoders PRIVATE -fsanitize=fuzzer-no-link)
