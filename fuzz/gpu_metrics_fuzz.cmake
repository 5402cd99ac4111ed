# SPDX-License-Identifier: Apache-2.0
gpuhealth_fuzz(gpu_metrics USES telemetry_decoders SOURCES gpu_metrics_fuzz.cpp)
# Without a hint the fuzzer would find a read past the end only where the sanitizer knows every byte of the rooms too.
target_compile_options(gh_telemetry_decoders PRIVATE -fsanitize=fuzzer-no-link)
